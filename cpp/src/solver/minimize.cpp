// The choice of a method, how results are judged, and the words for how a run ended.

#include "halosvm/solver/solver.hpp"

#include "halosvm/core/check.hpp"
#include "solver/method.hpp"
#include "solver/not_convex.hpp"
#include "objective/rounding.hpp"
#include "solver/wide_data.hpp"
#include "solver/zero_model.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace halosvm {

namespace {

struct Words {
  const char* name;
  const char* sentence;
};

Words words(Status status) {
  switch (status) {
    case Status::converged:
      return {"converged", "the certified suboptimality is within the tolerance"};
    case Status::zero_model:
      return {"zero_model", "the objective is least at w = 0, where all examples have the same score"};
    case Status::stationary:
      return {"stationary",
              "a point where no step of the search leads down; the loss is not convex, so no bound is known"};
    case Status::max_iterations:
      return {"max_iterations", "the allowed number of iterations ended before the tolerance was certified"};
    case Status::stalled:
      return {"stalled", "the search stalled, by rounding or for lack of progress, before the tolerance was certified"};
  }
  return {"", ""};
}

}  // namespace

const char* name(Status status) { return words(status).name; }
const char* message(Status status) { return words(status).sentence; }

Result Result::only(Index k) const {
  Result one;
  one.model = model.only(k);
  one.objective = objective.segment(k, 1);
  one.lower_bound = lower_bound.segment(k, 1);
  one.suboptimality = suboptimality.segment(k, 1);
  one.steps = steps;
  one.epochs = epochs;
  return one;
}

void Result::take(const Result& one, Index k) {
  check::require(k >= 0 && k < objective.size(), "k", "is " + std::to_string(k) + "; there is no such problem");
  if (one.objective(0) < objective(k) || one.status == Status::zero_model) {
    model.coef.row(k) = one.model.coef.row(0);
    model.intercept(k) = one.model.intercept(0);
    objective(k) = one.objective(0);
  }
  lower_bound(k) = std::max(lower_bound(k), one.lower_bound(0));
}

void check_start(const Objective& objective, const LinearModel& start) {
  check::same_size("start", start.coef.rows(), "objective", objective.n_problems(), "problems");
  check::same_size("start", start.coef.cols(), "objective", objective.n_features(), "features");
  check::same_size("start", start.intercept.size(), "objective", objective.n_problems(), "intercepts");
  check::require(start.coef.allFinite() && start.intercept.allFinite(), "start", "must be finite");
}

void require_convex(const Objective& objective) {
  check::require(
      objective.loss()->traits().convex(), "loss",
      std::string("is '") + objective.loss()->name() + "', which is not convex; only the default solver takes it");
}

void judge(const BatchSettings& settings, const Vector& error, Result& result) {
  const Index n_problems = result.objective.size();
  result.suboptimality.resize(n_problems);
  for (Index k = 0; k < n_problems; ++k) {
    const double lower = result.lower_bound(k);
    const double gap = std::max(0.0, result.objective(k) + error(k) - lower);
    // J = 0 is the least there is.
    result.suboptimality(k) = result.objective(k) == 0.0 ? 0.0 : lower > 0.0 ? gap / lower : infinity;
  }
  if (result.suboptimality.maxCoeff() <= settings.tolerance) {
    result.status = Status::converged;
  } else {
    result.status = result.steps >= settings.max_iterations ? Status::max_iterations : Status::stalled;
  }
}

void judge(const BatchSettings& settings, Result& result) {
  judge(settings, Vector::Zero(result.objective.size()), result);
}

void certify(const Objective& objective, const Vector& lower, const BatchSettings& settings, Result& result) {
  check::same_size("lower", lower.size(), "objective", objective.n_problems(), "problems");
  Evaluation at(objective.n_problems(), objective.n_features());
  objective.evaluate(result.model.coef, result.model.intercept, 0.0, at);
  result.objective = at.value;
  if (const LocalObjective* local = objective.local(); local != nullptr && exact_value_is_due(*local)) {
    for (Index k = 0; k < objective.n_problems(); ++k) {
      result.objective(k) = exact_value(local->only(k), result.model.only(k), true).value;
    }
  }
  result.lower_bound = lower;
  judge(settings, result);
}

namespace {

/// The result of a run that has yet to begin.
Result nothing(const LocalObjective& objective, const LinearModel& start) {
  Result result;
  result.model = start;
  result.objective = Vector::Constant(objective.n_problems(), infinity);
  result.lower_bound = Vector::Zero(objective.n_problems());
  result.suboptimality = result.objective;
  return result;
}

/// Whether J has kinks that only interior points resolve: where examples have no spread, and where w has about as many
/// dimensions as all spreads together, so that it can leave some of them behind.
bool has_kinks(const LocalObjective& objective) {
  if (!supports_interior_point(objective)) return false;
  const Factors* factors = objective.data().covariances().factors();
  if (objective.has_many_kinks()) {
    // Examples a feature whose kinks together are nearly smooth. Interior points take one problem after another, and
    // their Hessians of factors more time.
    const Index of_some = factors != nullptr ? 100 : 300;
    const Index very_many = objective.kinked_everywhere() && objective.n_problems() == 1 ? 200 : of_some;
    return objective.n_samples() < very_many * objective.n_features();
  }
  return factors != nullptr && total_rank(*factors, objective.n_samples()) <= 4 * objective.n_features();
}

/// Goes on with one problem, by interior points or Hessians and then by L-BFGS from the better model: interior points
/// lose their way where spreads dominate all margins.
void finish(const LocalObjective& problem, const Moments& about, const BatchSettings& settings, Result& result) {
  constexpr Index few_features = 20;  // for which interior points are faster than another proof of a minimum at w = 0
  if (result.steps > 0 && problem.n_features() > few_features) {
    take_zero_models(problem, settings, result);
    if (result.suboptimality(0) <= settings.tolerance) return;
  }
  for (Search* const run : {supports_newton(problem) ? run_newton : run_interior_point, run_lbfgs}) {
    constexpr Index last_resort = 200;
    const Index done = result.steps;
    if (done >= settings.max_iterations || result.suboptimality(0) <= settings.tolerance) break;
    BatchSettings rest = settings;
    rest.max_iterations -= done;
    const bool has_kinks = problem.loss()->traits().kinked;
    if (run == run_lbfgs && has_kinks) rest.max_iterations = std::min(rest.max_iterations, last_resort);
    if (settings.report) {
      rest.report = [&settings, done](const Progress& at) {
        settings.report({done + at.epochs, at.objective, at.suboptimality});
      };
    }
    Result other = run(problem, about, result.model, rest);
    if (exact_value_is_due(problem)) certify(problem, Vector(other.lower_bound), rest, other);
    result.take(other, 0);
    result.steps = done + other.steps;
    judge(settings, result);
  }
}

/// Passes of L-BFGS that take about as long as interior points would, within limits: what is spent is doubled at most.
/// Several problems share a pass.
Index enough_passes(const LocalObjective& objective) {
  constexpr Index most = 400;
  const Index least = objective.n_problems() == 1 ? 60 : 200;
  const Index d = objective.n_features();
  const Index hessian = objective.data().covariances().factors() != nullptr ? 2 * d : d;
  return std::clamp(hessian + d * d / (3 * objective.n_samples()), least, most);
}

/// C times the mean of |x|^2: with it grows the number of times that each dual variable has to move. Where weights
/// differ, n is what that many equal ones would be.
double pull_of_examples(const LocalObjective& objective, const Moments& about) {
  double squares = 0.0;
  for (Index i = 0; i < objective.n_samples(); ++i) {
    const double weight = objective.weight(objective.rows(i, 1)[0]);
    squares += weight * weight;
  }
  return squares * (about.variance.sum() + about.centre.squaredNorm()) / objective.regularisation();
}

/// Whether single steps in dual variables are worth a try: where they take time for what is stored of a row, where
/// there are fewer examples than features, and where few are needed, which a model of the Hessian of very many examples
/// for each feature does better still.
bool begins_in_the_dual(const LocalObjective& objective, const Moments& about) {
  if (!objective.kinked_everywhere() || !supports_dual_coordinate(objective)) return false;
  const auto n = static_cast<double>(objective.n_samples());
  const auto d = static_cast<double>(objective.n_features());
  if (objective.data().means().sparse()) return n < 100.0 * d;
  if (about.centre.squaredNorm() > about.variance.sum()) return false;  // then many steps undo what others have done
  if (2.0 * n <= d) return true;
  const double pull = pull_of_examples(objective, about);
  if (has_kinks(objective)) return pull <= std::min(0.03 * (d - 40.0), 10.0);
  return n <= 1000.0 * d && (objective.n_problems() > 1 ? pull <= 1.0 : pull * n <= 150.0 * d);
}

/// Whether interior points, or smooth losses, are worth their Hessians, which for sparse means cost many more passes
/// than for dense ones.
bool has_second_order(const LocalObjective& objective) {
  constexpr Index dear = 2000;  // products for each number that a pass reads
  const Index d = objective.n_features();
  const bool known = supports_interior_point(objective) || supports_newton(objective);
  if (!known || d > interior_point_features) return false;
  const Means& means = objective.data().means();
  return !means.sparse() || d * means.rows_worth_a_vector() <= dear;
}

Result in_these_features(const LocalObjective& objective, const Moments& about, const LinearModel& start,
                         const BatchSettings& settings) {
  if (!has_second_order(objective)) return run_lbfgs(objective, about, start, settings);
  Result result = has_kinks(objective) ? nothing(objective, start)
                                       : run_lbfgs_briefly(objective, about, start, settings, enough_passes(objective));
  for (Index k = 0; k < objective.n_problems(); ++k) {
    if (result.suboptimality(k) <= settings.tolerance) continue;
    Result one = result.only(k);
    one.steps = result.epochs;
    finish(objective.only(k), about, settings, one);
    result.take(one, k);
    result.steps = std::max(result.steps, one.steps);
  }
  result.epochs = result.steps;
  return result;
}

}  // namespace

Result run_in_span(const LocalObjective& objective, const Moments& about, const LinearModel& start,
                   const BatchSettings& settings) {
  if (!Span::pays(objective)) return in_these_features(objective, about, start, settings);
  const Span span(objective);
  const LinearModel origin(objective.n_problems(), span.objective().n_features());  // interior points know no start
  Result result = in_these_features(span.objective(), span.objective().moments(), origin, settings);
  result.model = span.out_of(result.model);
  certify(objective, Vector(result.lower_bound), settings, result);
  return result;
}

namespace {

/// The method that suits the objective.
Result minimize_here(const LocalObjective& objective, const Moments& about, const LinearModel& start,
                     const BatchSettings& settings) {
  constexpr Index enough = 400;  // passes, after which steps in the dual are too small
  if (!begins_in_the_dual(objective, about)) return run_in_span(objective, about, start, settings);
  BatchSettings first = settings;
  first.max_iterations = std::min(settings.max_iterations, enough);
  Result result = run_dual_coordinate(objective, about, start, first);
  BatchSettings rest = settings;
  rest.max_iterations -= result.steps;
  if (result.status == Status::converged || rest.max_iterations <= 0) return result;
  if (settings.report) {
    rest.report = [&settings, done = result.steps](const Progress& at) {
      settings.report({done + at.epochs, at.objective, at.suboptimality});
    };
  }
  const Result other = run_in_span(objective, about, result.model, rest);
  for (Index k = 0; k < objective.n_problems(); ++k) result.take(other.only(k), k);
  result.steps += other.steps;
  result.epochs += other.epochs;
  judge(settings, result);
  return result;
}

Result minimize_by_interior_points(const Objective& objective, const LinearModel& start,
                                   const BatchSettings& settings) {
  const LocalObjective* local = objective.local();
  if (local == nullptr) check::fail("objective", "is a sum of parts, but interior points need the examples themselves");
  require_convex(objective);
  check::require(
      !local->has_variances(), "objective",
      "has errors of the targets, which interior points do not know; use the L-BFGS or the stochastic solver");
  check::require(supports_interior_point(*local) || local->spread_norm() == 2.0, "objective",
                 "has errors bounded in a norm that interior points do not know, which take 1, 2 and infinity; use the "
                 "L-BFGS or the stochastic solver");
  check::require(supports_interior_point(*local), "loss",
                 std::string("is '") + objective.loss()->name() +
                     "', whose dual interior points do not know; use the L-BFGS or the stochastic solver");
  check::require(!local->data().means().sparse() || local->n_features() <= interior_point_features, "objective",
                 "has " + std::to_string(local->n_features()) + " features of sparse means; interior points solve a " +
                     "dense system of all features, and take up to " + std::to_string(interior_point_features) +
                     ". Use the default or the L-BFGS solver");
  return apply(run_interior_point, *local, start, settings);
}

Result minimize_in_the_dual(const Objective& objective, const LinearModel& start, const BatchSettings& settings) {
  const LocalObjective* local = objective.local();
  if (local == nullptr) {
    check::fail("objective", "is a sum of parts, but the dual coordinate solver needs the examples themselves");
  }
  require_convex(objective);
  check::require(local->loss()->traits().certain.end > 0.0, "loss",
                 std::string("is '") + objective.loss()->name() +
                     "', whose dual the dual coordinate solver does not know; use the default or the L-BFGS solver");
  check::require(local->all_certain(), "objective",
                 "has uncertain examples, but the dual coordinate solver takes certain ones alone; use the default or "
                 "the L-BFGS solver");
  return apply(run_dual_coordinate, *local, start, settings);
}

}  // namespace

// NOLINTNEXTLINE(misc-no-recursion): what is not convex begins with a convex majorant
Result minimize(const Objective& objective, const LinearModel& start, const BatchSettings& settings) {
  check::require(settings.max_iterations > 0, "max_iterations", "must be positive");
  check::require(settings.tolerance >= 0.0, "tolerance", "must be >= 0");
  if (settings.method == Method::interior_point) return minimize_by_interior_points(objective, start, settings);
  if (settings.method == Method::dual_coordinate) return minimize_in_the_dual(objective, start, settings);
  const bool automatic = settings.method == Method::automatic;
  if (automatic && !objective.loss()->traits().convex()) return minimize_not_convex(objective, start, settings);
  const LocalObjective* local = objective.local();
  if (local == nullptr) return minimize_by_evaluations(objective, start, settings);
  return apply(automatic ? minimize_here : run_lbfgs, *local, start, settings);
}

}  // namespace halosvm
