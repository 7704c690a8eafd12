// What surrounds a batch method: a start comes in, a result leaves that is certified with all rounding in mind.

#include "solver/method.hpp"

#include "objective/centred.hpp"
#include "objective/rounding.hpp"
#include "solver/zero_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halosvm {

void settle(const LocalObjective& objective, const Moments& about, const BatchSettings& settings, Result& result) {
  const double small = 0.02 * std::max(settings.tolerance, 1e-9);
  const Rounding rounding(objective, about);
  const bool exact_pays = exact_value_pays(objective);
  const LossTraits& traits = objective.loss()->traits();
  Evaluation at(objective.n_problems(), objective.n_features());
  if (!traits.kinked) objective.value_and_gradient(result.model.coef, result.model.intercept, at);
  Vector error(objective.n_problems());
  for (Index k = 0; k < objective.n_problems(); ++k) {
    const Result one = result.only(k);
    const Vector w = one.model.coef.row(0).transpose();
    const double noise =
        traits.kinked ? rounding.of_spreads(objective.only(k), one.model) : rounding.of_spreads(w, at.curvature(k));
    error(k) = rounding.of_value(w, one.model.intercept(0), traits.kinked ? infinity : at.square(k)) + noise;
    if (error(k) <= small * one.objective(0) || !exact_pays) continue;
    const ExactValue exact = exact_value(objective.only(k), one.model);
    result.objective(k) = exact.value;
    error(k) = exact.error;
  }
  const Status ended = result.status;
  judge(settings, error, result);
  if (!traits.convex() || (ended == Status::zero_model && result.status == Status::converged)) result.status = ended;
}

namespace {

bool is_small(const LocalObjective& objective) {
  constexpr Index little = Index{1} << 14;  // numbers
  return objective.n_samples() * objective.n_features() <= little;
}

/// The model of means seen from the centre as one of the means themselves. The intercept's rounding may cost more than
/// the tolerance; of a few models that differ by less than it, in length alone, the one that rounds best is taken.
LinearModel rounded_well(const LocalObjective& objective, const Centred& centred, const Result& inside,
                         double tolerance) {
  constexpr int few = 64;
  constexpr double step = 1e-11;
  LinearModel outside = centred.out_of(inside.model);
  if (!exact_value_pays(objective)) return outside;
  for (Index k = 0; k < objective.n_problems(); ++k) {
    const LocalObjective problem = objective.only(k);
    const double enough = inside.objective(k) * (1.0 + 0.1 * tolerance);
    const double steepest = problem.loss()->traits().steepest;
    if (steepest * 0x1p-53 * std::abs(outside.intercept(k)) <= 0.1 * tolerance * inside.objective(k)) continue;
    double best = exact_value(problem, outside.only(k), true).value;
    for (int i = 1; i <= few && best > enough; ++i) {
      LinearModel other = inside.model.only(k);
      const double factor = 1.0 + (i % 2 == 0 ? i : -i) * step;
      other.coef *= factor;
      other.intercept *= factor;
      other = centred.out_of(other);
      const double value = exact_value(problem, other, true).value;
      if (!(value < best)) continue;
      best = value;
      outside.coef.row(k) = other.coef.row(0);
      outside.intercept(k) = other.intercept(0);
    }
  }
  return outside;
}

}  // namespace

Result apply_once(Search& method, const LocalObjective& objective, const LinearModel& start, const BatchSettings& inner,
                  const BatchSettings& settings) {
  // Each pass over data seen from their centre copies the means: nothing for little data.
  constexpr double some = 4.0;
  constexpr double much = 1000.0;
  const Moments about = objective.moments();
  const bool convex = objective.loss()->traits().convex();
  Result result;
  if (Centred::pays(objective, about, is_small(objective) ? some : much)) {
    const Centred centred(objective, about);
    result = method(centred.objective(), centred.about(), centred.into(start), inner);
    if (convex) take_zero_models(centred.objective(), inner, result);
    result.model = rounded_well(objective, centred, result, settings.tolerance);
    const Status status = result.status;
    certify(objective, Vector(result.lower_bound), inner, result);
    result.status = status;
  } else {
    result = method(objective, about, start, inner);
    if (convex) take_zero_models(objective, inner, result);
  }
  settle(objective, about, settings, result);
  return result;
}

Result apply(Search& method, const LocalObjective& objective, const LinearModel& start, const BatchSettings& settings) {
  check_start(objective, start);
  require_convex(objective);
  BatchSettings inner = settings;
  inner.tolerance *= 0.9;  // rounding takes the rest
  Result result = apply_once(method, objective, start, inner, settings);
  // Complementarity stops at a share of the tolerance: a smaller one may be what the bound needs.
  for (int i = 0; i < 3 && result.status == Status::stalled; ++i) {
    if (!is_small(objective) && result.suboptimality.maxCoeff() > 3.0 * settings.tolerance) break;
    inner.tolerance *= 0.1;
    inner.max_iterations = settings.max_iterations - result.steps;
    if (inner.max_iterations <= 0) break;
    Result closer = apply_once(method, objective, result.model, inner, settings);
    closer.steps += result.steps;
    closer.epochs += result.epochs;
    result.steps = closer.steps;
    result.epochs = closer.epochs;
    if (converged(closer.status)) result = std::move(closer);
  }
  return result;
}

namespace {

bool has_zeros(const LinearModel& model) { return (model.coef.array() == 0.0).rowwise().all().any(); }

/// Takes w = 0 for the problems where that is not worse.
void take_zero_by_evaluations(const Objective& objective, Result& result) {
  LinearModel zero(objective.n_problems(), objective.n_features());
  zero.intercept = objective.exact_intercept(zero.coef, zero.intercept, 0.0);
  Evaluation at(objective.n_problems(), objective.n_features());
  objective.evaluate(zero.coef, zero.intercept, 0.0, at);
  for (Index k = 0; k < objective.n_problems(); ++k) {
    if (result.objective(k) < at.value(k)) continue;
    result.objective(k) = at.value(k);
    result.model.coef.row(k).setZero();
    result.model.intercept(k) = zero.intercept(k);
  }
}

}  // namespace

Result minimize_by_evaluations(const Objective& objective, const LinearModel& start, const BatchSettings& settings) {
  check_start(objective, start);
  require_convex(objective);
  const Moments about = objective.moments();
  BatchSettings inner = settings;
  inner.tolerance *= 0.9;  // rounding takes the rest
  Result result = run_lbfgs_anywhere(objective, about, start, inner);

  const Vector near_zero = objective.value_at_zero() * (1.0 - inner.tolerance);
  if (!converged(result.status) || (result.objective.array() >= near_zero.array()).any()) {
    // Each look at w = 0 may go to other machines.
    take_zero_by_evaluations(objective, result);
    judge(inner, result);
  }
  const bool open = !converged(result.status) && result.steps < inner.max_iterations;
  if (open && has_zeros(result.model) && objective.loss()->traits().kinked) {
    constexpr double low_floor = 0.01;  // any does, as scores begin at 0
    // Spreads with a floor have no kink at w = 0: the dual variables of the last floors prove the minimum there.
    BatchSettings rest = inner;
    rest.max_iterations = inner.max_iterations - result.steps;
    Result proof = run_lbfgs_for_a_proof(objective, about, result, rest, low_floor);
    for (Index k = 0; k < objective.n_problems(); ++k) result.take(proof.only(k), k);
    result.steps += proof.steps;
    result.epochs += proof.epochs;
    take_zero_by_evaluations(objective, result);
  }
  const Rounding rounding(objective, about);
  Evaluation at(objective.n_problems(), objective.n_features());
  objective.evaluate(result.model.coef, result.model.intercept, 0.0, at);
  Vector error(objective.n_problems());
  for (Index k = 0; k < objective.n_problems(); ++k) {
    const double square = objective.loss()->traits().kinked ? infinity : at.square(k);
    const Vector w = result.model.coef.row(k).transpose();
    error(k) = rounding.of_value(w, result.model.intercept(k), square) + rounding.of_spreads(w, at.curvature(k));
  }
  judge(settings, error, result);
  if (has_zeros(result.model) && result.status == Status::converged) result.status = Status::zero_model;
  return result;
}

}  // namespace halosvm
