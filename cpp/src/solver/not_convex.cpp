// What is not convex: an objective comes in, the models of its problems go out, from where nothing leads down.

#include "solver/not_convex.hpp"

#include "halosvm/core/check.hpp"
#include "solver/cccp.hpp"
#include "solver/method.hpp"

#include <algorithm>
#include <string>

namespace halosvm {
namespace {

/// The worse of two ends.
Status worse(Status a, Status b) {
  if (a == Status::stationary) return b;
  return b == Status::stationary ? a : std::max(a, b);
}

/// The minimum of the convex majorant, with half of the iterations at most.
// NOLINTNEXTLINE(misc-no-recursion): a majorant is convex
Result start_of_descent(const LocalObjective& objective, const LinearModel& start, const BatchSettings& settings) {
  BatchSettings first;
  first.tolerance = settings.tolerance;
  first.max_iterations = settings.max_iterations / 2;
  return minimize(objective.with_loss(make_loss(objective.loss()->traits().majorant)), start, first);
}

}  // namespace

// NOLINTNEXTLINE(misc-no-recursion): as above
Result minimize_not_convex(const Objective& objective, const LinearModel& start, const BatchSettings& settings) {
  const LocalObjective* local = objective.local();
  if (local == nullptr) check::fail("objective", "is a sum of parts, but a loss that is not convex needs the examples");
  const bool rounds = objective.loss()->traits().shift < 0.0;
  check::require(
      !rounds || !local->data().means().sparse(), "loss",
      std::string("is '") + objective.loss()->name() +
          "', whose solver moves every mean, so that it does not take sparse means; give them as a dense array");
  check_start(objective, start);
  Result result;
  result.model = start;
  BatchSettings rest = settings;
  if (!rounds && start.coef.isZero(0.0) && settings.max_iterations > 1) {
    result = start_of_descent(*local, start, settings);
    const Index done = result.steps;
    rest.max_iterations -= done;
    if (settings.report) {
      rest.report = [&settings, done](const Progress& at) {
        settings.report({done + at.epochs, at.objective, at.suboptimality});
      };
    }
  }
  const Index before = result.steps;
  result.objective = Vector::Zero(objective.n_problems());
  result.lower_bound = Vector::Zero(objective.n_problems());
  result.suboptimality = Vector::Constant(objective.n_problems(), infinity);
  result.status = Status::stationary;
  for (Index k = 0; k < objective.n_problems(); ++k) {
    Search& search = rounds ? run_rounds : run_descent;
    const Result one = apply_once(search, local->only(k), result.model.only(k), rest, rest);
    result.model.coef.row(k) = one.model.coef.row(0);
    result.model.intercept(k) = one.model.intercept(0);
    result.objective(k) = one.objective(0);
    result.steps = std::max(result.steps, before + one.steps);
    result.epochs = std::max(result.epochs, before + one.epochs);
    result.status = worse(result.status, one.status);
  }
  return result;
}

}  // namespace halosvm
