#include "halosvm/solver/sgd.hpp"
#include "oracle/errors.hpp"
#include "oracle/no_numbers.hpp"
#include "oracle/problem.hpp"
#include "oracle/sgd_walk.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using halosvm::Averaging;
using halosvm::Index;
using halosvm::LinearModel;
using halosvm::Matrix;
using halosvm::Progress;
using halosvm::Result;
using halosvm::SgdSettings;
using halosvm::Status;
using halosvm::Vector;
using oracle::BatchMaker;
using oracle::DenseObjective;
using oracle::not_a_number;
using oracle::Problem;
using oracle::Random;
using oracle::real;
using oracle::RealVector;
using oracle::row_of_draw;

namespace {

LinearModel zero_start(const Problem& problem) { return {problem.n_problems, problem.d()}; }

SgdSettings steps(Index count, Index batch_size, Averaging averaging = Averaging::weighted, std::uint64_t seed = 0) {
  SgdSettings settings;
  settings.max_steps = count;
  settings.batch_size = batch_size;
  settings.averaging = averaging;
  settings.seed = seed;
  settings.tolerance = 0.0;
  return settings;
}

bool same_bits(const Result& a, const Result& b) {
  return a.model.coef == b.model.coef && a.model.intercept == b.model.intercept && a.objective == b.objective &&
         a.suboptimality == b.suboptimality && a.steps == b.steps && a.epochs == b.epochs && a.status == b.status;
}

/// The library's model against \ref walk, with the exact intercept of the oracle's own objective where the intercept is
/// exact.
void check_walk(const Problem& problem, const SgdSettings& settings, const LinearModel& start) {
  CAPTURE(problem.batch.name);
  CAPTURE(problem.n_problems);
  CAPTURE(problem.loss);
  CAPTURE(problem.fit_intercept);
  CAPTURE(settings.batch_size);
  const Result result = minimize(problem.objective(), start, settings);
  CHECK(result.steps == settings.max_steps);
  for (Index k = 0; k < problem.n_problems; ++k) {
    const RealVector want =
        oracle::walk(problem, k, settings, oracle::joined(start.coef.row(k).transpose(), start.intercept(k)));
    const RealVector got = oracle::joined(result.model.coef.row(k).transpose(), result.model.intercept(k));
    CHECK(static_cast<double>((got - want).head(problem.d()).norm()) < 1e-12);
    const DenseObjective dense = problem.dense(k);
    DenseObjective lifted = dense;  // above what rounding to float32 leaves of singular matrices below 0
    for (auto& S : lifted.S) S.diagonal() *= 1.0 + 0x1p-24 * static_cast<double>(S.rows());
    CHECK(result.objective(k) >= static_cast<double>(dense.value(got)) * (1.0 - 1e-13));
    const bool rounded = problem.batch.name.find("float32") != std::string::npos;
    const DenseObjective& most = rounded ? lifted : dense;
    CHECK(result.objective(k) <= static_cast<double>(most.value(got)) * (1.0 + 1e-13));
    if (settings.averaging == Averaging::none) {
      CHECK(std::abs(static_cast<double>(got(problem.d()) - want(problem.d()))) < 1e-11);
    } else if (problem.fit_intercept) {
      for (const double step : {-1.0, -1e-3, -1e-6, 1e-6, 1e-3, 1.0}) {
        RealVector moved = got;
        moved(problem.d()) += step;
        CHECK(dense.value(moved) >= dense.value(got) - 1e-15L);
      }
    } else {
      CHECK(got(problem.d()) == 0);
    }
  }
}

/// A well-behaved problem without certain examples, for the tests of convergence.
Problem smooth_problem(Index n, Index problems) {
  Problem problem(BatchMaker<double>(n, 3, 100).full(), problems, 40);
  std::vector<double> numbers;
  for (Matrix& S : problem.batch.dense) {
    S += 0.2 * Matrix::Identity(3, 3);
    numbers.insert(numbers.end(), S.data(), S.data() + S.size());
  }
  problem.batch.covariances = std::make_shared<halosvm::FullCovariances>(
      oracle::ArrayView(problem.batch.keep(std::move(numbers)), 3 * n, 3), n);
  return problem;
}

}  // namespace

TEST_CASE("draws are those of SplitMix64 scaled to the rows") {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{12345}, ~std::uint64_t{0}}) {
    for (const Index n : {1, 2, 10, 1000000}) {
      for (std::uint64_t draw = 0; draw < 200; ++draw)
        CHECK(halosvm::sgd_row(seed, draw, n) == row_of_draw(seed, draw, n));
    }
  }
}

TEST_CASE("draws are uniform over the rows, and those of two seeds are unrelated") {
  constexpr Index n = 20;
  constexpr int draws = 20000;
  std::vector<int> counts(n, 0);
  int equal = 0;
  for (int i = 0; i < draws; ++i) {
    const Index row = halosvm::sgd_row(1, static_cast<std::uint64_t>(i), n);
    REQUIRE(row >= 0);
    REQUIRE(row < n);
    ++counts[static_cast<std::size_t>(row)];
    equal += row == halosvm::sgd_row(2, static_cast<std::uint64_t>(i), n) ? 1 : 0;
  }
  // Five standard deviations of a binomial law around 1000.
  for (const int count : counts) CHECK(std::abs(count - 1000) < 5 * 31);
  CHECK(std::abs(equal - 1000) < 5 * 31);
}

TEST_CASE("the walk is that of the specification, step by step, for every kind") {
  for (const auto& batch : oracle::all_batches(14, 3, 101)) {
    for (const Index problems : {1, 3}) {
      Problem problem(batch, problems, 41);
      Random random(42);
      LinearModel start = zero_start(problem);
      start.coef = 0.3 * random.normal_matrix(problems, 3);
      start.intercept = random.normal_vector(problems);
      check_walk(problem, steps(40, 5, Averaging::weighted, 7), start);
      problem.add_random_weights(43);
      check_walk(problem, steps(40, 5, Averaging::none, 8), start);
    }
  }
}

TEST_CASE("the walk is that of the specification for every batch size, also beyond one block and for all rows") {
  for (const Index batch_size : {1, 255, 256, 257, 600, 1100, 1101, 5000}) {
    for (const Averaging averaging : {Averaging::weighted, Averaging::none}) {
      Problem problem(BatchMaker<float>(1101, 2, 102).diagonal(true), 1, 44);
      problem.lam = 0.02;
      check_walk(problem, steps(20, batch_size, averaging), zero_start(problem));
    }
  }
}

TEST_CASE("the walk is that of the specification for the hinge, far from the origin, and without an intercept") {
  Problem problem(BatchMaker<double>(50, 3, 103).diagonal(false), 1, 45);
  problem.X.rowwise() += Eigen::RowVector3d(20.0, -5.0, 3.0);
  check_walk(problem, steps(100, 8), zero_start(problem));
  problem.loss = "hinge";
  check_walk(problem, steps(100, 8), zero_start(problem));
  problem.fit_intercept = false;
  check_walk(problem, steps(100, 8), zero_start(problem));
  check_walk(problem, steps(100, 8, Averaging::none), zero_start(problem));
}

TEST_CASE("without an intercept the start's intercept does not matter") {
  Problem problem = smooth_problem(40, 1);
  problem.fit_intercept = false;
  LinearModel start = zero_start(problem);
  start.intercept(0) = 5.0;
  for (const Averaging averaging : {Averaging::weighted, Averaging::none}) {
    const Result want = minimize(problem.objective(), zero_start(problem), steps(20, 4, averaging));
    const Result got = minimize(problem.objective(), start, steps(20, 4, averaging));
    CHECK(got.model.intercept(0) == 0.0);
    CHECK((got.model.coef - want.model.coef).norm() < 1e-14);
  }
}

TEST_CASE("the fit reaches the optimum within 1e-4, and its certificate holds") {
  for (const Index problems : {1, 3}) {
    const Problem problem = smooth_problem(120, problems);
    SgdSettings settings;
    settings.max_epochs = 20000;
    settings.tolerance = 1e-4;
    settings.batch_size = 8;
    const Result result = minimize(problem.objective(), zero_start(problem), settings);
    CHECK(result.status == Status::converged);
    for (Index k = 0; k < problems; ++k) {
      const DenseObjective dense = problem.dense(k);
      const auto optimum = static_cast<double>(dense.value(dense.minimiser()));
      CHECK(result.objective(k) >= optimum * (1 - 1e-14));
      CHECK(result.objective(k) <= optimum * (1 + 1e-4));
      CHECK(result.objective(k) - optimum <= result.suboptimality(k) * optimum * (1 + 1e-10) + 1e-14);
      CHECK(result.suboptimality(k) <= 1e-4);
    }
  }
}

TEST_CASE("the certificate holds at every stage and for both schedules") {
  const Problem problem = smooth_problem(60, 1);
  const DenseObjective dense = problem.dense();
  const auto optimum = static_cast<double>(dense.value(dense.minimiser()));
  for (const Averaging averaging : {Averaging::weighted, Averaging::none}) {
    SgdSettings settings = steps(2000, 4, averaging);
    settings.report = [&](const Progress& progress) {
      CHECK(progress.objective >= optimum * (1 - 1e-14));
      CHECK(progress.objective - optimum <= progress.suboptimality * optimum * (1 + 1e-10));
    };
    minimize(problem.objective(), zero_start(problem), settings);
  }
}

TEST_CASE("one seed gives one result to the last bit, on 1, 2 and 4 threads; another seed another") {
  for (const Index problems : {1, 3}) {
    Problem problem(BatchMaker<float>(900, 4, 104).full(), problems, 46);
    const SgdSettings settings = steps(150, 16, Averaging::weighted, 5);
    const Result result = minimize(problem.objective(1), zero_start(problem), settings);
    for (const int n_threads : {1, 2, 4}) {
      CHECK(same_bits(result, minimize(problem.objective(n_threads), zero_start(problem), settings)));
    }
    SgdSettings other = settings;
    other.seed = 6;
    CHECK(result.model.coef != minimize(problem.objective(), zero_start(problem), other).model.coef);
  }
}

TEST_CASE("a batch of all rows is a deterministic descent that no seed changes") {
  const Problem problem = smooth_problem(40, 1);
  const Result a = minimize(problem.objective(), zero_start(problem), steps(60, 40, Averaging::weighted, 1));
  const Result b = minimize(problem.objective(), zero_start(problem), steps(60, 4000, Averaging::weighted, 2));
  CHECK(same_bits(a, b));
  CHECK(a.epochs == 60);
}

TEST_CASE("certificates come after 1, 2, 4, ... passes and at the end, and are reported on the calling thread") {
  const Problem problem = smooth_problem(40, 3);
  SgdSettings settings = steps(0, 8);
  settings.max_epochs = 11;
  std::vector<Index> epochs;
  Progress last{};
  bool here = true;
  const auto caller = std::this_thread::get_id();
  settings.report = [&](const Progress& progress) {
    epochs.push_back(progress.epochs);
    last = progress;
    here = here && std::this_thread::get_id() == caller;
  };
  const Result result = minimize(problem.objective(2), zero_start(problem), settings);
  CHECK(epochs == std::vector<Index>{1, 2, 4, 8, 11});
  CHECK(here);
  CHECK(result.epochs == 11);
  CHECK(result.steps == 55);
  CHECK(last.objective == result.objective.maxCoeff());
  CHECK(last.suboptimality == result.suboptimality.maxCoeff());
}

TEST_CASE("max_steps counts instead of max_epochs, and passes are rounded up") {
  const Problem problem = smooth_problem(41, 1);
  SgdSettings settings = steps(13, 8);  // six steps make a pass
  settings.max_epochs = 1;
  const Result result = minimize(problem.objective(), zero_start(problem), settings);
  CHECK(result.steps == 13);
  CHECK(result.epochs == 3);
  CHECK(result.status == Status::max_iterations);
}

TEST_CASE("the status tells whether the tolerance was certified") {
  const Problem problem = smooth_problem(40, 1);
  SgdSettings settings = steps(0, 8);
  settings.max_epochs = 1000;
  settings.tolerance = 0.5;
  const Result early = minimize(problem.objective(), zero_start(problem), settings);
  CHECK(early.status == Status::converged);
  CHECK(early.suboptimality(0) <= 0.5);
  CHECK(early.epochs < 1000);
  settings.max_epochs = 2;
  settings.tolerance = 1e-12;
  CHECK(minimize(problem.objective(), zero_start(problem), settings).status == Status::max_iterations);
}

TEST_CASE("the caller's hook stops a fit within half a second, and its exceptions reach the caller") {
  using Clock = std::chrono::steady_clock;
  for (const Index problems : {1, 3}) {
    const Problem problem = smooth_problem(400, problems);
    for (const int n_threads : {1, 2}) {
      int asked = 0;
      Clock::time_point refused;
      halosvm::Execution execution;
      execution.n_threads = n_threads;
      execution.keep_running = [&] {
        refused = Clock::now();
        return ++asked < 3;
      };
      SgdSettings settings = steps(1000000000, 4);
      CHECK_THROWS_AS(minimize(problem.objective(execution), zero_start(problem), settings), halosvm::Stopped);
      CHECK(std::chrono::duration<double>(Clock::now() - refused).count() < 0.5);
      execution.keep_running = []() -> bool { throw std::domain_error("interrupted"); };
      CHECK_THROWS_WITH_AS(minimize(problem.objective(execution), zero_start(problem), settings), "interrupted",
                           std::domain_error);
    }
  }
}

TEST_CASE("an exception of the report reaches the caller") {
  const Problem problem = smooth_problem(40, 1);
  SgdSettings settings = steps(100, 4);
  settings.report = [](const Progress&) { throw std::domain_error("enough"); };
  CHECK_THROWS_WITH_AS(minimize(problem.objective(), zero_start(problem), settings), "enough", std::domain_error);
}

TEST_CASE("settings and starts that make no sense are named") {
  const Problem problem = smooth_problem(20, 3);
  const auto error = [&](const SgdSettings& settings, const LinearModel& start) {
    return oracle::error_of([&] { minimize(problem.objective(), start, settings); });
  };
  const LinearModel start = zero_start(problem);
  const auto with = [](const auto& change) {
    SgdSettings settings;
    settings.max_epochs = 1;
    change(settings);
    return settings;
  };
  CHECK(error(with([](auto&) {}), start).empty());
  CHECK(error(with([](auto& s) { s.batch_size = 0; }), start) == "batch_size must be positive");
  CHECK(error(with([](auto& s) { s.batch_size = -5; }), start) == "batch_size must be positive");
  CHECK(error(with([](auto& s) { s.max_epochs = 0; }), start) == "max_epochs must be positive");
  CHECK(error(with([](auto& s) { s.tolerance = -1e-3; }), start) == "tolerance must be >= 0");
  CHECK(error(with([](auto& s) { s.tolerance = not_a_number; }), start) == "tolerance must be >= 0");
  const SgdSettings valid = with([](auto&) {});
  CHECK(error(valid, LinearModel(2, 3)) == "start has 2 problems, objective has 3");
  CHECK(error(valid, LinearModel(3, 4)) == "start has 4 features, objective has 3");
  LinearModel bad = start;
  bad.coef(1, 2) = not_a_number;
  CHECK(error(valid, bad) == "start must be finite");
  bad = start;
  bad.intercept(2) = std::numeric_limits<double>::infinity();
  CHECK(error(valid, bad) == "start must be finite");
  bad = start;
  bad.intercept = Vector::Zero(1);
  CHECK(error(valid, bad).find("start") == 0);
}
