#include "halosvm/interior_point.hpp"

#include "halosvm/moments.hpp"
#include "factor.hpp"
#include "newton_system.hpp"
#include "zero_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace halosvm {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// One problem from start to certified end.
class InteriorPoint {
 public:
  InteriorPoint(const Objective& objective, const Moments& about)
      : objective_(objective),
        d_(objective.n_features()),
        centre_(about.centre),
        system_(objective, about.centre),
        w_(1, d_) {
    start(about.variance.cwiseMax(1e-300));
  }

  /// Look; stop or go on; predict; correct; move. Returns the number of steps.
  Index run(const BatchSettings& settings) {
    constexpr double to_the_boundary = 0.995;
    int stuck = 0;
    Index iteration = 0;
    for (;; ++iteration) {
      look();
      if (settings.report) settings.report({iteration, best_value_, suboptimality()});
      if (suboptimality() <= settings.tolerance || iteration == settings.max_iterations || stuck == 3) break;
      if (!factor_.compute(hessian_)) break;

      const NewtonSums predicted = system_.predict(w_, factor_.solve(predictor_));
      const double before = system_.complementarity(0.0);
      const double after = std::max(0.0, system_.complementarity(system_.longest_step(1.0)));
      const double mu = after * (after / before) * (after / before);

      const Vector du = factor_.solve(predicted.right - residual_ + mu * predicted.centring);
      const double shrinking = system_.correct(w_, du, mu);
      double length = system_.longest_step(1.0 / to_the_boundary);
      // Spreads bend where w passes 0, and Newton's model knows nothing of it: stay on this side.
      if (shrinking < 0.0) length = std::min(length, 0.9 * spread2_ / -shrinking);
      length = std::min(1.0, to_the_boundary * length);
      system_.move(length);
      w_.row(0) += length * du.head(d_).transpose();
      if (objective_.fit_intercept()) b_ += length * du(d_);
      stuck = length < 1e-4 ? stuck + 1 : 0;
    }
    return iteration;
  }

  /// The best coefficients and intercept so far.
  const Matrix& coef() const { return best_w_; }
  double intercept() const { return best_b_ - best_w_.row(0).dot(centre_); }
  double lower_bound() const { return std::max(lower_bound_, 0.0); }

 private:
  /// The direction of a naive Gaussian rule, of unit size, and dual variables in the middle of their bounds.
  void start(const Vector& variance) {
    const double constant = 1e-20 * variance.maxCoeff();  // rounding alone gives a constant feature a variance
    w_.row(0) = (variance.array() > constant).select(system_.slope_at_zero().cwiseQuotient(variance), 0.0).transpose();
    const double width = std::sqrt(w_.row(0).cwiseAbs2().dot(variance.transpose()));
    const double radius = 1.0 / std::sqrt(objective_.regularisation());
    if (width > 0.0 && std::isfinite(width)) {
      w_ *= std::min(1.0 / width, radius / w_.norm());
    } else {
      w_.setConstant(1e-6 * std::min(1.0, radius));
    }
    const double positive = system_.class_weight(true);
    const double negative = system_.class_weight(false);
    const double half = 0.5 * std::min(positive, negative);
    system_.start(w_, b_, half / positive, half / negative);
  }

  double suboptimality() const {
    return lower_bound_ > 0.0 ? std::max(0.0, best_value_ - lower_bound_) / lower_bound_ : infinity;
  }

  /// Newton's system at the present point; keeps the best value and the best bound.
  void look() {
    NewtonSums sums = system_.assemble(w_, b_);
    const double lam = objective_.regularisation();
    const double value = 0.5 * lam * w_.squaredNorm() + sums.value;
    if (value < best_value_) {
      best_value_ = value;
      best_w_ = w_;
      best_b_ = b_;
    }
    lower_bound_ = std::max(lower_bound_, dual_bound(sums));

    residual_ = sums.beyond - (sums.positive + sums.negative);
    residual_.head(d_) += lam * w_.row(0).transpose();
    hessian_ = std::move(sums.hessian);
    hessian_.diagonal().head(d_).array() += lam;
    if (!objective_.fit_intercept()) {
      residual_(d_) = 0.0;
      sums.right(d_) = 0.0;
      hessian_.row(d_).setZero();
      hessian_(d_, d_) = 1.0;
    }
    predictor_ = sums.right - residual_;
    spread2_ = sums.spread2;
  }

  /// Scaling down the dual variables of the heavier class makes sum c theta y = 0 exactly, and keeps them feasible.
  double dual_bound(const NewtonSums& sums) const {
    double positive = 1.0;
    double negative = 1.0;
    if (objective_.fit_intercept()) {
      positive = std::min(1.0, sums.theta_negative / sums.theta_positive);
      negative = std::min(1.0, sums.theta_positive / sums.theta_negative);
    }
    const Vector dual_w = positive * sums.positive.head(d_) + negative * sums.negative.head(d_);
    return positive * sums.theta_positive + negative * sums.theta_negative -
           dual_w.squaredNorm() / (2.0 * objective_.regularisation());
  }

  const Objective& objective_;
  Index d_;
  Vector centre_;
  NewtonSystem system_;
  Factor factor_;
  Matrix w_;
  double b_ = 0.0;  ///< intercept for centred means
  Matrix hessian_;
  Vector residual_;
  Vector predictor_;
  double spread2_ = 0.0;
  double best_value_ = infinity;
  double lower_bound_ = -infinity;
  Matrix best_w_;
  double best_b_ = 0.0;
};

}  // namespace

Result run_interior_point(const Objective& objective, const LinearModel& /*start*/, const BatchSettings& settings) {
  const Moments about = moments(objective);
  Result result;
  result.model = LinearModel(objective.n_problems(), objective.n_features());
  Vector lower(objective.n_problems());
  for (Index k = 0; k < objective.n_problems(); ++k) {
    const Objective single = objective.only(k);
    InteriorPoint problem(single, about);
    result.steps = std::max(result.steps, problem.run(settings));
    result.model.coef.row(k) = problem.coef();
    result.model.intercept(k) = problem.intercept();
    lower(k) = problem.lower_bound();
  }
  result.epochs = result.steps;
  result.model.intercept = objective.exact_bias(result.model.coef, result.model.intercept);
  certify(objective, lower, settings.tolerance, result);
  return result;
}

Result minimize_interior_point(const Objective& objective, const LinearModel& start, const BatchSettings& settings) {
  check_start(objective, start);
  Result result = run_interior_point(objective, start, settings);
  take_zero_models(objective, settings, result);
  return result;
}

}  // namespace halosvm
