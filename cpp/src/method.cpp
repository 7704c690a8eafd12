// What surrounds a batch method: a start comes in, a result leaves that is certified with all rounding in mind.

#include "method.hpp"

#include "centred.hpp"
#include "rounding.hpp"
#include "zero_model.hpp"

#include <algorithm>
#include <string>

namespace halosvm {
namespace {

/// Allows for rounding, and where that would matter evaluates the model with more digits.
void settle(const Objective& objective, const Moments& about, const BatchSettings& settings, Result& result) {
  constexpr double digits = 0x1p-49;
  const double small = 0.02 * std::max(settings.tolerance, 1e-9);
  const Rounding rounding(objective, about);
  const bool exact_pays = exact_value_pays(objective);
  Vector error(objective.n_problems());
  for (Index k = 0; k < objective.n_problems(); ++k) {
    const Result one = result.only(k);
    const Vector w = one.model.coef.row(0).transpose();
    const double noise = rounding.of_spreads(objective.only(k), one.model);
    error(k) = rounding.of_value(w, one.model.intercept(0)) + noise;
    if (error(k) <= small * one.objective(0) || !exact_pays) continue;
    result.objective(k) = exact_value(objective.only(k), one.model);
    error(k) = digits * result.objective(k);
  }
  const bool zero = result.status == Status::zero_model;
  judge(settings, error, result);
  if (zero && result.status == Status::converged) result.status = Status::zero_model;
}

LinearModel of_problem(const LinearModel& model, Index k) {
  LinearModel one(1, model.coef.cols());
  one.coef = model.coef.row(k);
  one.intercept = model.intercept.segment(k, 1);
  return one;
}

/// The model of means seen from the centre as one of the means themselves. The intercept's rounding may cost more than
/// the tolerance; of a few models that differ by less than it, in length alone, the one that rounds best is taken.
LinearModel rounded_well(const Objective& objective, const Centred& centred, const Result& inside, double tolerance) {
  constexpr int few = 64;
  constexpr double step = 1e-11;
  LinearModel outside = centred.out_of(inside.model);
  if (!exact_value_pays(objective)) return outside;
  for (Index k = 0; k < objective.n_problems(); ++k) {
    const Objective problem = objective.only(k);
    const double enough = inside.objective(k) * (1.0 + 0.1 * tolerance);
    double best = exact_value(problem, of_problem(outside, k));
    for (int i = 1; i <= few && best > enough; ++i) {
      LinearModel other = of_problem(inside.model, k);
      const double factor = 1.0 + (i % 2 == 0 ? i : -i) * step;
      other.coef *= factor;
      other.intercept *= factor;
      other = centred.out_of(other);
      const double value = exact_value(problem, other);
      if (!(value < best)) continue;
      best = value;
      outside.coef.row(k) = other.coef.row(0);
      outside.intercept(k) = other.intercept(0);
    }
  }
  return outside;
}

/// One run, certified as the caller's numbers have it.
Result run(Method& method, const Objective& objective, const Moments& about, const LinearModel& start,
           const BatchSettings& inner, const BatchSettings& settings) {
  Result result;
  if (Centred::pays(objective, about)) {
    const Centred centred(objective, about);
    result = method(centred.objective(), centred.about(), centred.into(start), inner);
    take_zero_models(centred.objective(), inner, result);
    result.model = rounded_well(objective, centred, result, settings.tolerance);
    const Status status = result.status;
    certify(objective, Vector(result.lower_bound), inner, result);
    result.status = status;
  } else {
    result = method(objective, about, start, inner);
    take_zero_models(objective, inner, result);
  }
  settle(objective, about, settings, result);
  return result;
}

}  // namespace

Result apply(Method& method, const Objective& objective, const LinearModel& start, const BatchSettings& settings) {
  check_start(objective, start);
  const Moments about = moments(objective);
  BatchSettings inner = settings;
  inner.tolerance *= 0.9;  // rounding takes the rest
  Result result = run(method, objective, about, start, inner, settings);
  if (result.status == Status::stalled && result.suboptimality.maxCoeff() <= 3.0 * settings.tolerance) {
    inner.tolerance *= 0.1;  // or more of it
    Result closer = run(method, objective, about, result.model, inner, settings);
    closer.steps += result.steps;
    closer.epochs += result.epochs;
    if (converged(closer.status)) return closer;
  }
  return result;
}

}  // namespace halosvm
