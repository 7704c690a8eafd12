#include "halosvm/solver.hpp"

#include "halosvm/check.hpp"
#include "halosvm/interior_point.hpp"
#include "halosvm/lbfgs.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace halosvm {

const char* message(Status status) {
  switch (status) {
    case Status::converged:
      return "the certified suboptimality is within the tolerance";
    case Status::max_iterations:
      return "the allowed number of passes over the data ended before the tolerance was certified";
    case Status::zero_model:
      return "the objective is least at w = 0, where only the larger class is predicted";
  }
  return "";
}

void check_start(const Objective& objective, const LinearModel& start) {
  check::same_size("start", start.coef.rows(), "objective", objective.n_problems(), "problems");
  check::same_size("start", start.coef.cols(), "objective", objective.n_features(), "features");
  check::same_size("start", start.intercept.size(), "objective", objective.n_problems(), "intercepts");
  check::require(start.coef.allFinite() && start.intercept.allFinite(), "start", "must be finite");
}

void certify(const Objective& objective, const Vector& lower, double tolerance, Result& result) {
  Gradient at(objective.n_problems(), objective.n_features());
  objective.value_and_gradient(result.model.coef, result.model.intercept, at);
  result.objective = at.value;
  result.lower_bound = lower;
  result.suboptimality.resize(lower.size());
  for (Index k = 0; k < lower.size(); ++k) {
    const double gap = std::max(0.0, at.value(k) - lower(k));
    result.suboptimality(k) = lower(k) > 0.0 ? gap / lower(k) : std::numeric_limits<double>::infinity();
  }
  result.status = result.suboptimality.maxCoeff() <= tolerance ? Status::converged : Status::max_iterations;
}

namespace {

/// Takes over from another run the models and the bounds that are better.
void take_better(const Objective& objective, const Result& other, double tolerance, Result& result) {
  for (Index k = 0; k < result.objective.size(); ++k) {
    if (!(other.objective(k) < result.objective(k))) continue;
    result.model.coef.row(k) = other.model.coef.row(k);
    result.model.intercept(k) = other.model.intercept(k);
  }
  certify(objective, result.lower_bound.cwiseMax(other.lower_bound), tolerance, result);
}

}  // namespace

Result minimize(const Objective& objective, const LinearModel& start, const BatchSettings& settings) {
  constexpr Index most_features = 4000;
  constexpr Index soon = 60;
  if (objective.n_features() > most_features) return minimize_lbfgs(objective, start, settings);
  if (objective.all_certain()) return minimize_interior_point(objective, start, settings);

  BatchSettings part = settings;
  part.max_iterations = std::min(settings.max_iterations, soon);
  Result first = minimize_lbfgs(objective, start, part);
  const Index left = settings.max_iterations - first.steps;
  if (first.status != Status::max_iterations || left <= 0) return first;
  part.max_iterations = left;
  Result second = minimize_interior_point(objective, start, part);
  Index steps = first.steps + second.steps;
  take_better(objective, first, settings.tolerance, second);
  if (second.status != Status::converged && steps < settings.max_iterations) {
    // Interior points lose their way where spreads dominate all margins; L-BFGS goes on from the better model.
    part.max_iterations = settings.max_iterations - steps;
    Result third = minimize_lbfgs(objective, second.model, part);
    steps += third.steps;
    if (third.status != Status::zero_model) take_better(objective, second, settings.tolerance, third);
    second = std::move(third);
  }
  second.steps = steps;
  second.epochs = steps;
  return second;
}

}  // namespace halosvm
