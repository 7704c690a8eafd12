// Streams: where calls end changes no bit, examples without weight are passed over, and steps allocate nothing.
#include "halosvm/solver/stream.hpp"
#include "oracle/allocations.hpp"
#include "oracle/errors.hpp"
#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

using halosvm::ArrayView;
using halosvm::Index;
using halosvm::StreamExamples;
using halosvm::StreamState;
using oracle::all_batches;
using oracle::Batch;
using oracle::Problem;

namespace {

StreamState beginning(const Problem& problem) {
  return StreamState(halosvm::LinearModel(problem.n_problems, problem.d()));
}

StreamExamples examples_of(const Problem& problem) {
  return {{ArrayView(problem.X.data(), problem.n(), problem.d()), problem.batch.covariances},
          problem.codes.data(),
          {{nullptr, 0.0}},
          problem.weights.data(),
          nullptr};
}

void follow(const Problem& problem, const StreamExamples& examples, StreamState& state) {
  halosvm::Execution execution;
  execution.n_threads = 1;
  halosvm::follow(examples, *halosvm::make_loss(problem.loss), problem.lam, problem.fit_intercept, execution, state);
}

}  // namespace

TEST_CASE("examples without weight are passed over, for every kind") {
  for (const Batch& batch : all_batches(14, 3, 77)) {
    CAPTURE(batch.name);
    for (const Index problems : {1, 3}) {
      Problem problem(batch, problems, 21);
      problem.add_random_weights(22);
      Problem other = problem;
      for (Index i = 0; i < problem.n(); ++i) {
        if (problem.weights[static_cast<std::size_t>(i)] == 0.0) other.X.row(i).setConstant(1e6);
      }
      StreamState one = beginning(problem);
      StreamState two = one;
      follow(problem, examples_of(problem), one);
      follow(other, examples_of(other), two);
      CHECK(one.steps < problem.n());
      CHECK(one.model().coef == two.model().coef);
      CHECK(one.model().intercept == two.model().intercept);
      CHECK(one.model().coef.allFinite());
      CHECK(!one.model().coef.isZero());
    }
  }
}

TEST_CASE("a step allocates nothing") {
  for (const Batch& batch : all_batches(14, 3, 77)) {
    CAPTURE(batch.name);
    Problem problem(batch, 3, 21);
    problem.add_random_weights(22);
    const StreamExamples examples = examples_of(problem);
    examples.data.assume_checked();
    StreamExamples none = examples;
    const std::vector<double> zeros(14, 0.0);
    none.weights = zeros.data();
    StreamState state = beginning(problem);
    const std::size_t without = oracle::allocations_in([&] { follow(problem, none, state); });
    CHECK(oracle::allocations_in([&] { follow(problem, examples, state); }) == without);
  }
}

TEST_CASE("a step along sparse examples allocates nothing but the list of their columns") {
  std::vector<double> values(60, 1.5);
  std::vector<std::int32_t> columns, offsets{0};
  std::vector<std::int16_t> codes;
  for (std::int32_t i = 0; i < 60; ++i) {
    columns.push_back((7 * i) % 20);
    offsets.push_back(i + 1);
    codes.push_back(static_cast<std::int16_t>(i % 2));
  }
  const halosvm::SparseView view(values.data(), columns.data(), offsets.data(), 60, 20);
  const StreamExamples examples{
      {view, halosvm::no_covariances(60, 20)}, codes.data(), {{nullptr, 0.0}}, nullptr, nullptr};
  examples.data.assume_checked();
  const std::vector<double> zeros(60, 0.0);
  StreamExamples none = examples;
  none.weights = zeros.data();
  StreamState state(halosvm::LinearModel(1, 20));
  const auto loss = halosvm::make_loss("hinge");
  const auto run = [&](const StreamExamples& some) {
    return oracle::allocations_in([&] { halosvm::follow(some, *loss, 0.1, true, {}, state); });
  };
  const std::size_t without = run(none);
  CHECK(run(examples) == without + 1);
  CHECK(state.steps == 60);
  CHECK(!state.iterates.factors.col(0).isZero());  // the steps were those of few columns
}

TEST_CASE("a state of another shape is refused") {
  const Problem problem(all_batches(14, 3, 77).front(), 1, 21);
  const auto refused = [&](const auto& damage) {
    StreamState state = beginning(problem);
    damage(state);
    CHECK_THROWS_AS(follow(problem, examples_of(problem), state), std::invalid_argument);
  };
  refused([](StreamState& state) { state.iterates.coef.resize(1, 2); });
  refused([](StreamState& state) { state.iterates.average.resize(1, 2); });
  refused([](StreamState& state) { state.iterates.centre.resize(2); });
  refused([](StreamState& state) { state.iterates.factors.resize(1, 4); });
  refused([](StreamState& state) { state.iterates.along_centre.resize(2); });
  refused([](StreamState& state) { state.iterates.square.resize(0); });
  refused([](StreamState& state) { state.intercept.resize(2); });
  refused([](StreamState& state) { state.average_intercept.resize(0); });
}
