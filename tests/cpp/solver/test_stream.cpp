// Streams: where calls end changes no bit, examples without weight are passed over, and steps allocate nothing.
#include "halosvm/solver/stream.hpp"
#include "oracle/allocations.hpp"
#include "oracle/errors.hpp"
#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>

using halosvm::ArrayView;
using halosvm::Index;
using halosvm::Matrix;
using halosvm::StreamExamples;
using halosvm::StreamState;
using halosvm::Vector;
using oracle::all_batches;
using oracle::Batch;
using oracle::Problem;

namespace {

StreamState beginning(const Problem& problem) {
  const Index k = problem.n_problems;
  const Index d = problem.d();
  return {Matrix::Zero(k, d), Matrix::Zero(k, d), Vector::Zero(k), Vector::Zero(k), Vector::Zero(d)};
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
      CHECK(one.average == two.average);
      CHECK(one.average_intercept == two.average_intercept);
      CHECK(one.average.allFinite());
      CHECK(!one.average.isZero());
    }
  }
}

TEST_CASE("a step allocates nothing") {
  for (const Batch& batch : all_batches(14, 3, 77)) {
    CAPTURE(batch.name);
    Problem problem(batch, 3, 21);
    problem.add_random_weights(22);
    const StreamExamples examples = examples_of(problem);
    StreamExamples none = examples;
    const std::vector<double> zeros(14, 0.0);
    none.weights = zeros.data();
    StreamState state = beginning(problem);
    const std::size_t without = oracle::allocations_in([&] { follow(problem, none, state); });
    CHECK(oracle::allocations_in([&] { follow(problem, examples, state); }) == without);
  }
}

TEST_CASE("a state of another shape is refused") {
  const Problem problem(all_batches(14, 3, 77).front(), 1, 21);
  StreamState state = beginning(problem);
  state.coef.resize(1, 2);
  CHECK_THROWS_AS(follow(problem, examples_of(problem), state), std::invalid_argument);
}
