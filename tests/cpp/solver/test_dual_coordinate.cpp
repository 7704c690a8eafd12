// Coordinate ascent in dual variables: feasible, repeatable, without allocations, and at the optimum of interior
// points.
#include "oracle/allocations.hpp"
#include "oracle/errors.hpp"
#include "oracle/problem.hpp"
#include "solver/dual_coordinate/walk.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>

using halosvm::BatchSettings;
using halosvm::CoordinateWalk;
using halosvm::Index;
using halosvm::LinearModel;
using halosvm::LocalObjective;
using halosvm::Matrix;
using halosvm::Method;
using halosvm::Result;
using halosvm::Status;
using halosvm::Vector;
using oracle::BatchMaker;
using oracle::Problem;

namespace {

class Always final : public halosvm::Checkpoint {
 public:
  void operator()() override {}
};

Problem certain(Index n, Index d, Index problems, std::uint64_t seed) {
  return {BatchMaker<double>(n, d, seed).zero(), problems, seed + 1};
}

Result minimum(const LocalObjective& objective, Method method, double tolerance, Index passes = 10000) {
  BatchSettings settings;
  settings.method = method;
  settings.tolerance = tolerance;
  settings.max_iterations = passes;
  return halosvm::minimize(objective, LinearModel(objective.n_problems(), objective.n_features()), settings);
}

Vector squares_of(const Problem& problem) { return problem.X.rowwise().squaredNorm(); }

}  // namespace

TEST_CASE("an epoch allocates nothing") {
  Problem problem = certain(3000, 5, 1, 7);
  problem.add_random_weights(8);
  const LocalObjective objective = problem.objective();
  const Vector squares = squares_of(problem);
  CoordinateWalk walk(objective, squares, 100000);
  Always checkpoint;
  for (int epoch = 0; epoch < 8; ++epoch) {  // the tenth may be followed by conjugate gradients
    CHECK(oracle::allocations_in([&] { walk.run(halosvm::infinity, 1e9, checkpoint); }) == 0);
  }
}

TEST_CASE("dual variables are feasible after any number of epochs, and examples without weight have none") {
  for (const char* loss : {"hinge", "expected_squared_hinge", "expected_huber_hinge"}) {
    CAPTURE(loss);
    Problem problem = certain(200, 4, 1, 17);
    problem.loss = loss;
    problem.lam = 1e-3;
    problem.add_random_weights(18);
    for (Index i = 0; i < 200; ++i) problem.codes[static_cast<std::size_t>(i)] = i % 19 == 0 ? 1 : 0;  // one class rare
    const LocalObjective objective = problem.objective();
    const Vector squares = squares_of(problem);
    const halosvm::CertainDual dual = objective.loss()->traits().certain;
    CoordinateWalk walk(objective, squares, 100000);
    Always checkpoint;
    Vector v(200);
    for (int epoch = 0; epoch < 60; ++epoch) {
      walk.run(0.0, walk.passes(), checkpoint);
      walk.make_feasible(v);
      double sum = 0.0;
      for (Index i = 0; i < 200; ++i) {
        CHECK(v(i) >= 0.0);
        if (objective.weight(i) == 0.0) {
          CHECK(v(i) == 0.0);
        } else {
          CHECK(problem.lam * v(i) <= dual.end * objective.weight(i) * (1.0 + 1e-14));
        }
        sum += objective.sign(i, 0) * v(i);
      }
      CHECK(std::abs(sum) <= 1e-13 * v.sum());
      if (epoch % 7 == 6) walk.take_all();
    }
  }
}

TEST_CASE("the optimum is that of interior points, for every box of wide data, weights, and several problems") {
  for (const Index problems : {1, 3, 10}) {
    for (const double lam : {1.0, 1e-2, 1e-4}) {
      for (const bool fit_intercept : {false, true}) {
        CAPTURE(problems);
        CAPTURE(lam);
        CAPTURE(fit_intercept);
        Problem problem = certain(60, 80, problems, 27);
        problem.loss = "hinge";
        problem.lam = lam;
        problem.fit_intercept = fit_intercept;
        problem.add_random_weights(28);
        const LocalObjective objective = problem.objective();
        const Result one = minimum(objective, Method::dual_coordinate, 1e-7);
        const Result other = minimum(objective, Method::interior_point, 1e-9);
        CHECK(halosvm::converged(one.status));
        for (Index k = 0; k < problems; ++k) {
          CHECK(one.objective(k) <= other.objective(k) * (1.0 + 1e-7));
          CHECK(one.objective(k) >= other.lower_bound(k) * (1.0 - 1e-14));
          CHECK(one.lower_bound(k) <= other.objective(k) * (1.0 + 1e-14));
          CHECK(one.suboptimality(k) <= 1e-7);
        }
      }
    }
  }
}

TEST_CASE("models have the same bits for every number of threads") {
  Problem problem = certain(3000, 6, 5, 37);
  problem.loss = "hinge";
  problem.lam = 1e-3;
  const Result one = minimum(problem.objective(1), Method::dual_coordinate, 1e-5);
  for (const int threads : {2, 4}) {
    const Result other = minimum(problem.objective(threads), Method::dual_coordinate, 1e-5);
    CHECK(one.model.coef == other.model.coef);
    CHECK(one.model.intercept == other.model.intercept);
    CHECK(one.lower_bound == other.lower_bound);
    CHECK(one.steps == other.steps);
  }
}

TEST_CASE("a run that may not end in time says so, with a bound that is true") {
  Problem problem = certain(500, 6, 1, 47);
  problem.loss = "hinge";
  problem.lam = 1e-5;
  const Result best = minimum(problem.objective(), Method::interior_point, 1e-9);
  for (const Index passes : {1, 2, 5, 20}) {
    const Result result = minimum(problem.objective(), Method::dual_coordinate, 1e-12, passes);
    CHECK(result.status == Status::max_iterations);
    CHECK(result.steps == passes);
    CHECK(result.lower_bound(0) <= best.objective(0));
    CHECK(result.objective(0) >= best.lower_bound(0));
  }
}

TEST_CASE("what the method does not know is refused with what to use instead") {
  Problem uncertain(BatchMaker<double>(40, 3, 57).isotropic(false), 1, 58);
  CHECK(oracle::error_of([&] { minimum(uncertain.objective(), Method::dual_coordinate, 1e-3); }) ==
        "objective has uncertain examples, but the dual coordinate solver takes certain ones alone; use the default or "
        "the L-BFGS solver");
  Problem logistic = certain(40, 3, 1, 59);
  logistic.loss = "expected_logistic";
  CHECK(oracle::error_of([&] { minimum(logistic.objective(), Method::dual_coordinate, 1e-3); }) ==
        "loss is 'expected_logistic', whose dual the dual coordinate solver does not know; use the default or the "
        "L-BFGS solver");
}
