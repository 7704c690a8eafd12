// No allocation inside an iteration: blocks of the objective allocate nothing, nor do the steps of a fit.
#include "halosvm/solver/sgd.hpp"
#include "oracle/allocations.hpp"
#include "oracle/gradients.hpp"
#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <vector>

using halosvm::ArrayView;
using halosvm::Averaging;
using halosvm::Evaluation;
using halosvm::Index;
using halosvm::LinearModel;
using halosvm::LocalObjective;
using halosvm::Matrix;
using halosvm::Result;
using halosvm::SgdSettings;
using halosvm::Vector;
using oracle::all_batches;
using oracle::Batch;
using oracle::BatchMaker;
using oracle::DenseObjective;
using oracle::difference;
using oracle::evaluate;
using oracle::joined;
using oracle::Point;
using oracle::Problem;
using oracle::RealVector;

namespace {

SgdSettings walk(Index count, Index batch_size, Averaging averaging = Averaging::weighted) {
  SgdSettings settings;
  settings.max_steps = count;
  settings.batch_size = batch_size;
  settings.averaging = averaging;
  settings.tolerance = 0.0;
  return settings;
}

}  // namespace

TEST_CASE("blocks add up to value and gradient without the regulariser, and allocate nothing, for every kind") {
  oracle::Random random(14);
  const Index list[] = {3, 0, 3, 13, 7};
  for (const Batch& batch : all_batches(14, 3, 77)) {
    CAPTURE(batch.name);
    for (const Index problems : {1, 3}) {
      Problem problem(batch, problems, 21);
      problem.add_random_weights(22);
      const LocalObjective objective = problem.objective();
      const Point at(problems, 3, random);
      Evaluation whole(problems, 3);
      LocalObjective::Workspace work(objective, 9, problems);
      const auto add_all = [&] {
        objective.add_block({0, 9}, 0, at.W, at.b, 1.0, work, whole);
        objective.add_block({9, 5}, 0, at.W, at.b, 1.0, work, whole);
      };
      CHECK(oracle::allocations_in(add_all) == 0);
      Evaluation want = evaluate(objective, at.W, at.b);
      want.value -= 0.5 * problem.lam * at.W.rowwise().squaredNorm();
      want.coef -= problem.lam * at.W;
      CHECK(difference(whole, want) < 1e-14);

      // One problem alone, a list of rows with a repetition, and a scale.
      const Index k = problems - 1;
      Evaluation some(1, 3);
      LocalObjective::Workspace small(objective, 5, 1);
      CHECK(oracle::allocations_in([&] {
              objective.add_block({0, 5, list}, k, at.W.middleRows(k, 1), at.b.segment(k, 1), 2.5, small, some);
            }) == 0);
      DenseObjective dense = problem.dense(k);
      Vector c = Vector::Zero(14);
      for (const Index row : list) c(row) += 2.5 * dense.c(row);
      dense.c = c;
      dense.lam = 0.0;
      const RealVector u = joined(at.W.row(k).transpose(), at.b(k));
      CHECK(oracle::relative_error(some.value(0), dense.value(u)) < 1e-14);
      CHECK(difference(some, 0, dense.gradient(u)) < 1e-14);
    }
  }
}

TEST_CASE("blocks of wide data allocate nothing either") {
  constexpr Index d = 20000;  // vectors beyond Eigen's limit for the stack
  const std::vector<float> means(4 * d, 0.5F);
  const std::vector<float> stds(4 * d * 2, 1.0F);
  const std::vector<std::int16_t> codes = {0, 1, 2, 0};
  const std::vector<std::shared_ptr<const halosvm::Covariances>> kinds = {
      std::make_shared<halosvm::ZeroCovariances>(4, d),
      std::make_shared<halosvm::IsotropicCovariances>(ArrayView(stds.data(), 4, 1, true), d),
      std::make_shared<halosvm::DiagonalCovariances>(ArrayView(stds.data(), 4, d, true)),
      std::make_shared<halosvm::LowRankCovariances>(ArrayView(stds.data(), 4 * d, 2), 4, d,
                                                    ArrayView(stds.data(), 4, d))};
  for (const auto& kind : kinds) {
    CAPTURE(kind->kind());
    const LocalObjective objective(halosvm::Gaussians(ArrayView(means.data(), 4, d), kind), {codes.data(), 3}, nullptr,
                                   1.0, halosvm::make_loss("expected_hinge"), true, {});
    for (const Index problems : {1, 3}) {
      LocalObjective::Workspace work(objective, 4, problems);
      Evaluation sum(problems, d);
      const Matrix W = Matrix::Constant(problems, d, 1e-3);
      const Vector b = Vector::Zero(problems);
      CHECK(oracle::allocations_in([&] { objective.add_block({0, 4}, 0, W, b, 1.0, work, sum); }) == 0);
    }
  }
}

TEST_CASE("passes find the memory of the pass before: value, gradient and Hessian products allocate nothing") {
  oracle::Random random(17);
  for (const Batch& batch : all_batches(300, 3, 81)) {
    CAPTURE(batch.name);
    for (const Index problems : {1, 3}) {
      const Problem problem(batch, problems, 25);
      const LocalObjective objective = problem.objective();
      const Point at(problems, 3, random);
      const Point along(problems, 3, random);
      Evaluation out(problems, 3);
      const auto pass = [&] { objective.evaluate(at.W, at.b, 0.0, out); };
      const auto product = [&] { objective.hessian_vector(at.W, at.b, along.W, along.b, out); };
      pass();
      CHECK(oracle::allocations_in(pass) == 0);
      product();
      CHECK(oracle::allocations_in(product) == 0);
    }
  }
}

TEST_CASE("the counter of allocations counts operator new and Eigen's own memory") {
  std::vector<double> kept;
  CHECK(oracle::allocations_in([&] { kept.assign(100, 1.0); }) == 1);
#ifdef HALOSVM_COUNT_MALLOC
  CHECK(oracle::allocations_in([] { Vector::Zero(1000).eval(); }) >= 1);
  const Problem problem(BatchMaker<double>(14, 3, 79).full(), 1, 24);
  CHECK(oracle::allocations_in([&] { evaluate(problem.objective(), Matrix::Ones(1, 3), Vector::Zero(1)); }) >= 5);
#endif
}

TEST_CASE("the iteration allocates nothing: ten times the steps cost not one allocation more") {
  // Up to one pass there is a single certificate. What its bound allocates depends on the model, so that is taken off.
  for (const auto& batch : oracle::all_batches(1000, 3, 105)) {
    for (const Index problems : {1, 3}) {
      for (const Averaging averaging : {Averaging::weighted, Averaging::none}) {
        CAPTURE(batch.name);
        CAPTURE(problems);
        Problem problem(batch, problems, 47);
        problem.fit_intercept = false;
        const auto objective = problem.objective();
        const LinearModel start(problem.n_problems, problem.d());
        minimize(objective, start, walk(1, 1, averaging));  // from here on passes find the memory of the one before
        const auto count = [&](const SgdSettings& settings) {
          Result result;
          const auto all = oracle::allocations_in([&] { result = minimize(objective, start, settings); });
          const LinearModel& model = result.model;
          return all - oracle::allocations_in([&] { objective.lower_bound(model.coef, model.intercept); });
        };
        CHECK(count(walk(10, 1, averaging)) == count(walk(100, 1, averaging)));
        CHECK(count(walk(100, 1, averaging)) == count(walk(1000, 1, averaging)));
      }
    }
  }
}

TEST_CASE("the iteration with an intercept allocates nothing either") {
  // Here the search for the exact intercept adds a few allocations that depend on its path; one a step would be 900.
  for (const Index batch_size : {1, 40}) {
    Problem problem(BatchMaker<double>(1000 * batch_size, 2, 106).isotropic(false), 1, 48);
    const auto objective = problem.objective();
    const LinearModel start(problem.n_problems, problem.d());
    const auto few = oracle::allocations_in([&] { minimize(objective, start, walk(100, batch_size)); });
    const auto many = oracle::allocations_in([&] { minimize(objective, start, walk(1000, batch_size)); });
    CHECK(std::abs(static_cast<double>(many) - static_cast<double>(few)) < 300.0);
  }
}
