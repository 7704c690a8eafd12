#include "halosvm/halosvm.hpp"
#include "oracle/allocations.hpp"
#include "oracle/errors.hpp"
#include "oracle/no_numbers.hpp"
#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <new>
#include <vector>

using halosvm::BatchSettings;
using halosvm::LinearModel;
using halosvm::LocalObjective;
using halosvm::Matrix;
using halosvm::SgdSettings;
using halosvm::StreamExamples;
using halosvm::StreamState;
using halosvm::Vector;
using oracle::BatchMaker;
using oracle::not_a_number;
using oracle::Problem;
using oracle::refused;

namespace {}  // namespace

TEST_CASE("every search refuses starts and settings that cannot be") {
  const Problem problem(BatchMaker<double>(9, 3, 5).diagonal(false), 1, 6);
  const LocalObjective objective = problem.objective();
  LinearModel odd(1, 3);
  odd.coef(0, 1) = not_a_number;
  const auto batch = [&](const LinearModel& start, halosvm::Index iterations, double tolerance) {
    return refused([&] { halosvm::minimize(objective, start, BatchSettings{iterations, tolerance, {}}); });
  };
  const LinearModel start(1, 3);
  CHECK(batch(start, 10, 1e-3).empty());
  for (const LinearModel& bad : {LinearModel(2, 3), LinearModel(1, 2), LinearModel(), odd}) {
    CHECK(batch(bad, 10, 1e-3) == "start");
    CHECK(refused([&] { halosvm::minimize(objective, bad, SgdSettings()); }) == "start");
  }
  CHECK(batch(start, 0, 1e-3) == "max_iterations");
  CHECK(batch(start, -1, 1e-3) == "max_iterations");
  CHECK(batch(start, 10, not_a_number) == "tolerance");
  CHECK(batch(start, 10, -1.0) == "tolerance");
  SgdSettings sgd;
  sgd.tolerance = not_a_number;
  CHECK(refused([&] { halosvm::minimize(objective, start, sgd); }) == "tolerance");
  sgd = {};
  sgd.batch_size = 0;
  CHECK(refused([&] { halosvm::minimize(objective, start, sgd); }) == "batch_size");
  sgd = {};
  sgd.max_epochs = 0;
  CHECK(refused([&] { halosvm::minimize(objective, start, sgd); }) == "max_epochs");
  halosvm::Result result;
  result.model = start;
  CHECK(refused([&] { halosvm::certify(objective, Vector::Zero(2), {}, result); }) == "lower");
}

TEST_CASE("streams refuse states, terms and numbers that cannot be") {
  const std::vector<double> means{1.0, 2.0, 3.0, 4.0};
  const std::vector<std::int16_t> codes{0, 1};
  std::vector<double> numbers{1.0, 1.0};
  const auto loss = halosvm::make_loss("expected_hinge");
  const halosvm::Gaussians data(halosvm::ArrayView(means.data(), 2, 2), halosvm::no_covariances(2, 2));
  const auto follow = [&](const StreamExamples& examples, const LinearModel& start = LinearModel(1, 2)) {
    StreamState state(start);
    return refused([&] { halosvm::follow(examples, *loss, 1.0, true, {}, state); });
  };
  CHECK(follow({data, codes.data(), {{}}, nullptr, nullptr}).empty());
  CHECK(follow({data, codes.data(), {{}}, nullptr, nullptr}, LinearModel(1, 3)) == "state");
  CHECK(follow({data, nullptr, {{}}, nullptr, nullptr}) == "codes");
  CHECK(follow({data, codes.data(), {}, nullptr, nullptr}) == "terms");
  CHECK(follow({data, codes.data(), {{nullptr, 1.0, -1.0}}, nullptr, nullptr}) == "share");
  for (const double bad : {not_a_number, halosvm::infinity, -1.0}) {
    numbers[1] = bad;
    CHECK(follow({data, codes.data(), {{}}, numbers.data(), nullptr}) == "weights");
    CHECK(follow({data, codes.data(), {{}}, nullptr, numbers.data()}) == "variances");
    if (bad != -1.0) CHECK(follow({data, codes.data(), {{numbers.data(), 1.0, 1.0}}, nullptr, nullptr}) == "offsets");
  }
  CHECK(refused([] { halosvm::Iterates(Matrix::Zero(1, 2), Vector::Zero(3)); }) == "centre");
}

TEST_CASE("a fit of which any allocation fails ends with bad_alloc, or as it would have") {
  const Problem problem(BatchMaker<double>(6000, 3, 5).diagonal(false), 1, 6);
  const auto fit = [&] {
    const halosvm::Result result = halosvm::minimize(problem.objective(3), LinearModel(1, 3), BatchSettings());
    CHECK(halosvm::converged(result.status));
  };
  const std::size_t n_allocations = oracle::allocations_in(fit);
  std::size_t failed = 0;
  for (std::size_t number = 1; number <= n_allocations; number += 1 + n_allocations / 200) {
    oracle::fail_allocation(number);
    try {
      fit();
    } catch (const std::bad_alloc&) {
      ++failed;
    }
    oracle::fail_allocation(0);
  }
  CHECK(failed > 0);
}
