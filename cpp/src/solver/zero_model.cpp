// Proofs of a minimum at w = 0: a result comes in, w = 0 with a bound goes out where it is better.

#include "solver/zero_model.hpp"

#include "solver/method.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halosvm {
namespace {

/// How much J(0) rises to first order along a direction, with the best intercept, when all spreads are multiplied by t.
class Rise {
 public:
  /// \param zero the model of w = 0.
  Rise(const LocalObjective& problem, const Result& zero)
      : problem_(problem), variance_(problem.moments().variance), zero_(zero.objective(0)), b_(zero.model.intercept) {}

  /// The t in [0, 1] at which the rise along \p coef is 0; rises grow with t. Looks above \p low first.
  double root(const Matrix& coef, double low) {
    constexpr double small = 1e-4;  // the size of scores, at which J - J(0) is of first order and well above rounding
    const double size = std::sqrt(coef.row(0).cwiseAbs2().dot(variance_.transpose()));
    if (!(size > 0.0)) return 0.0;
    const Matrix step = coef * (small / size);

    double high = 1.0;
    double at_low = at(step, low);
    if (at_low >= 0.0) {
      high = low;
      low = 0.0;
      at_low = at(step, low);
    }
    double at_high = at(step, high);
    if (at_low >= 0.0) return low;
    if (at_high <= 0.0) return high;
    bool low_moved = false;
    bool high_moved = false;
    for (int i = 0; i < 60 && high - low > 1e-9 * high; ++i) {  // the Illinois variant of regula falsi
      const double t = (low * at_high - high * at_low) / (at_high - at_low);
      const double rise = at(step, t);
      if (std::abs(rise) <= 1e-11) return t;
      if (rise < 0.0) {
        low = t;
        at_low = rise;
        if (low_moved) at_high *= 0.5;
        low_moved = true;
        high_moved = false;
      } else {
        high = t;
        at_high = rise;
        if (high_moved) at_low *= 0.5;
        high_moved = true;
        low_moved = false;
      }
    }
    return low;
  }

 private:
  double at(const Matrix& step, double t) {
    constexpr double inverse = 1e4;  // of the size of scores
    const LocalObjective other = problem_.with_spreads_times(t);
    Evaluation gradient(1, problem_.n_features());
    b_ = other.exact_intercept(step, b_);
    other.value_and_gradient(step, b_, gradient);
    return inverse * (gradient.value(0) - 0.5 * problem_.regularisation() * step.squaredNorm() - zero_);
  }

  const LocalObjective& problem_;
  Vector variance_;
  double zero_;
  Vector b_;  ///< the last intercept, from where the search for the next one starts
};

/// A bound on J* from below, close to J(0) if w = 0 is the minimum. \param model where to look for the direction in
/// which J rises least.
double bound_by_smaller_spreads(const LocalObjective& problem, const Result& zero, LinearModel model,
                                const BatchSettings& settings) {
  if (!problem.loss()->traits().kinked) return problem.lower_bound(zero.model.coef, zero.model.intercept)(0);
  Rise rise(problem, zero);
  double lower = 0.0;
  double t = 0.0;
  constexpr int rounds = 9;
  double margin = 1.0;
  for (int round = 0; round < rounds; ++round) {
    margin *= 0.1;
    t = rise.root(model.coef, t);
    if (t == 0.0) {  // not a direction that tells the classes apart: that of certain points does
      const LocalObjective certain = problem.with_spreads_times(0.0);
      const bool small = supports_interior_point(problem) && problem.n_features() <= interior_point_features;
      Search& search = small ? run_interior_point : run_lbfgs;
      const Result run = search(certain, certain.moments(), model, settings);
      lower = std::max(lower, run.lower_bound(0));
      model = run.model;
      t = rise.root(model.coef, t);
      if (t == 0.0) break;
    }
    const LocalObjective smaller = problem.with_spreads_times((1.0 - margin) * t);
    const Result run = run_lbfgs(smaller, smaller.moments(), model, settings);
    lower = std::max(lower, run.lower_bound(0));
    model = run.model;
    if (zero.objective(0) - lower <= settings.tolerance * lower) break;
  }
  return lower;
}

/// The same for one problem; whether the result is now w = 0, and the minimum. It is w = 0 also where that is better.
bool take_zero_model(const LocalObjective& problem, const BatchSettings& settings, Result& result) {
  constexpr double rounding = 1e-15;
  LinearModel zero(1, problem.n_features());
  zero.intercept = problem.exact_intercept(zero.coef, zero.intercept);
  Result there;
  there.model = std::move(zero);
  certify(problem, result.lower_bound, settings, there);
  if (there.objective(0) > result.objective(0) * (1.0 + rounding)) return false;
  if (there.status != Status::converged) {
    BatchSettings inner;
    inner.max_iterations = std::min<Index>(200, settings.max_iterations);
    inner.tolerance = 0.1 * settings.tolerance;
    const double lower = bound_by_smaller_spreads(problem, there, result.model, inner);
    certify(problem, Vector::Constant(1, std::max(lower, result.lower_bound(0))), settings, there);
  }
  const bool proved = there.status == Status::converged;
  if (proved) there.status = Status::zero_model;
  there.steps = result.steps;
  there.epochs = result.epochs;
  result = std::move(there);
  return proved;
}

}  // namespace

void take_zero_models(const LocalObjective& objective, const BatchSettings& settings, Result& result) {
  const Vector at_zero = objective.value_at_zero();
  bool any = false;
  for (Index k = 0; k < objective.n_problems(); ++k) {
    if (result.objective(k) < at_zero(k) * (1.0 - settings.tolerance)) continue;
    Result one = result.only(k);
    any = take_zero_model(objective.only(k), settings, one) || any;
    result.take(one, k);
  }
  judge(settings, result);
  if (any && result.status == Status::converged) result.status = Status::zero_model;
}

}  // namespace halosvm
