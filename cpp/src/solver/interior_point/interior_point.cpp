// The primal-dual method: an objective with the dual of quantiles comes in, models and bounds go out.

#include "gaussians/covariances/factored.hpp"
#include "linalg/cholesky_factor.hpp"
#include "solver/interior_point/newton_system.hpp"
#include "solver/method.hpp"
#include "objective/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace halosvm {
namespace {

/// One problem from start to certified end.
///
/// Both losses are psi(m, s) = max over 0 <= theta <= 1 of theta m + s phi(q), q = Phi^-1(theta) (spec A.1, conjugate
/// form), so that J* is the saddle point of
///
///     lam/2 |w|^2 + sum_i c_i [ theta_i m_i + s_i phi(q_i) ].
///
/// With multipliers r_i, t_i >= 0 of the bounds on theta_i, Newton's method is applied to
///
///     lam w = sum_i c_i (theta_i y_i x_i - phi(q_i) S_i w / s_i),   sum_i c_i theta_i y_i = 0,
///     t_i - r_i = m_i - s_i q_i,   theta_i r_i = mu,   (1 - theta_i) t_i = mu,
///
/// while mu goes to 0 (Mehrotra's predictor and corrector). Eliminating theta, r and t leaves one positive definite
/// system of order n_features + 1; an iteration costs three passes over the data and the sum of n_samples outer
/// products. The number of iterations (7 to 40) hardly depends on lam, on the scale of the data or on how small the
/// spreads are. Any theta with sum c theta y = 0 bounds J* from below, which certifies the result.
///
/// Covariances F_i F_i' of low rank leave room for w to have F_i'w = 0 for some examples, and there s_i has a kink. For
/// them s_i is a variable of its own and F_i'w has dual variables v_i with |v_i| <= phi(q_i), in the place of
/// phi(q_i) F_i'w / s_i; s_i >= |F_i'w| is a second-order cone (cones.hpp). That takes 10 to 20 iterations in most
/// cases.
class InteriorPoint {
 public:
  /// \param cautious takes second-order terms only in the share that the predictor could go: a third more iterations,
  /// but no circles where no long step is possible.
  InteriorPoint(const LocalObjective& objective, const Moments& about, double tolerance, bool with_cones, bool cautious)
      : objective_(objective),
        d_(objective.n_features()),
        tolerance_(tolerance),
        cautious_(cautious),
        rounding_(objective, about),
        exact_bound_pays_(ExactDual::pays(objective)),
        centre_(about.centre),
        system_(objective, about.centre, with_cones),
        w_(1, d_),
        best_w_(Matrix::Zero(1, d_)) {
    start(about.variance.cwiseMax(1e-300));
  }

  /// Look; stop or go on; predict; correct; move. Returns the number of steps, \p done before included.
  Index run(const BatchSettings& settings, Index done) {
    constexpr double to_the_boundary = 0.995;
    halved_ = done;
    int stuck = 0;
    Index iteration = done;
    for (;; ++iteration) {
      look();
      if (settings.report) settings.report({iteration, best_value_, suboptimality()});
      if (suboptimality() <= settings.tolerance || iteration == settings.max_iterations || stuck == 3) break;
      if (!gets_ahead(iteration)) break;
      if (!factor_.compute(hessian_)) break;

      const NewtonSums predicted = system_.predict(w_, factor_.solve(predictor_));
      const double before = complementarity_;
      const double free = system_.longest_step(1.0);
      const double after = std::max(0.0, system_.complementarity(free));
      // Below what the tolerance asks for, smaller complementarity only spoils the condition of the system.
      const double enough = 0.01 * settings.tolerance * best_value_;
      const double mu = std::max(after * (after / before) * (after / before), enough);
      const double share = cautious_ ? free * free : 1.0;

      const Vector right = predictor_ + share * (predicted.right - residual_ - predictor_) + mu * predicted.centring;
      const Vector du = factor_.solve(right);
      const double shrinking = system_.correct(w_, du, mu, share);
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

  /// The best value, coefficients and intercept so far.
  double value() const { return best_value_; }
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

  /// Whether the gap, that in units of the bound or the complementarity has halved lately: predictor and corrector may
  /// go round in circles. Far from the end the bound grows while the value hardly falls.
  bool gets_ahead(Index iteration) {
    const Index patience = cautious_ ? 15 : 8;
    const double gap = best_value_ - lower_bound_;
    const double share = suboptimality();
    if (gap <= 0.5 * gap_ || share <= 0.5 * share_ || complementarity_ <= 0.5 * least_complementarity_) {
      halved_ = iteration;
    }
    if (share <= 0.5 * share_) share_ = share;
    if (gap <= 0.5 * gap_) gap_ = gap;
    if (complementarity_ <= 0.5 * least_complementarity_) least_complementarity_ = complementarity_;
    return iteration - halved_ < patience;
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
    complementarity_ = system_.complementarity(0.0);
    if (suboptimality() > tolerance_ && exact_bound_pays_ && complementarity_ <= 0.25 * tolerance_ * best_value_) {
      const ExactDual exact = system_.exact(w_);  // rounding may be all that is in the way
      lower_bound_ = std::max(lower_bound_, exact.bound());
      residual_.head(d_) = sums.beyond.head(d_) - exact.gradient();
    }
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
    const double slope = positive * sums.theta_positive + negative * sums.theta_negative;
    const double dual = positive * sums.dual_positive + negative * sums.dual_negative;
    return rounding_.bound(DualSums::of(objective_.loss()->traits(), dual, slope * objective_.largest_offset(), slope),
                           dual_w) -
           rounding_.of_spreads(w_.row(0).transpose(), sums.curvature);
  }

  const LocalObjective& objective_;
  Index d_;
  double tolerance_;
  bool cautious_;
  Rounding rounding_;
  bool exact_bound_pays_;
  Vector centre_;
  NewtonSystem system_;
  CholeskyFactor factor_;
  Matrix w_;
  double b_ = 0.0;  ///< intercept for centred means
  Matrix hessian_;
  Vector residual_;
  Vector predictor_;
  double spread2_ = 0.0;
  double complementarity_ = 0.0;
  double best_value_ = infinity;
  double lower_bound_ = -infinity;
  Matrix best_w_;
  double best_b_ = 0.0;
  double gap_ = infinity;  ///< when it was last halved
  double share_ = infinity;
  double least_complementarity_ = infinity;
  Index halved_ = 0;  ///< the iteration in which either was
};

/// Whether spreads leave behind some w by their rank alone.
bool has_low_rank(const LocalObjective& objective) {
  const Factors* factors = objective.all_certain() ? nullptr : objective.data().covariances().factors();
  const Index n = objective.n_samples();
  return factors != nullptr && total_rank(*factors, n) < n * objective.n_features();
}

/// All attempts at one problem, first with all second-order terms, then cautiously. Spreads without cones take a third
/// of the time, and lead nowhere where they are so large that w shuns some directions or all.
class Attempts {
 public:
  Attempts(const LocalObjective& objective, const Moments& about, const BatchSettings& settings)
      : about_(about), settings_(settings), coef_(Matrix::Zero(1, objective.n_features())) {
    constexpr Index most = 4000000;  // numbers p, of which cones take several
    const bool low_rank = has_low_rank(objective) || objective.spread_norm() != 2.0;
    for (const bool cautious : {false, true}) {
      if (run(objective, low_rank, cautious)) return;
    }
    if (low_rank || objective.all_certain()) return;
    const Index d = objective.n_features();
    const bool factored = objective.data().covariances().factors() != nullptr;
    if (objective.n_samples() * d * (factored ? 1 : d) > most) return;
    const auto with_cones = [this](const LocalObjective& problem) {
      for (const bool cautious : {false, true}) {
        if (run(problem, true, cautious)) return;
      }
    };
    if (factored) {
      with_cones(objective);
    } else {
      const Factored factors(objective.data().covariances(), objective.execution());
      with_cones(objective.on({objective.data().shared_means(), factors.covariances()}));
    }
  }

  Index steps() const { return steps_; }
  double value() const { return value_; }
  double lower_bound() const { return lower_; }
  const Matrix& coef() const { return coef_; }
  double intercept() const { return intercept_; }

 private:
  /// Whether that was enough.
  bool run(const LocalObjective& objective, bool with_cones, bool cautious) {
    InteriorPoint problem(objective, about_, settings_.tolerance, with_cones, cautious);
    steps_ = problem.run(settings_, steps_);
    lower_ = std::max(lower_, problem.lower_bound());
    if (problem.value() < value_) {
      value_ = problem.value();
      coef_ = problem.coef();
      intercept_ = problem.intercept();
    }
    return value_ - lower_ <= settings_.tolerance * lower_ || steps_ >= settings_.max_iterations;
  }

  const Moments& about_;
  const BatchSettings& settings_;
  Index steps_ = 0;
  double value_ = infinity;
  double lower_ = 0.0;
  Matrix coef_;
  double intercept_ = 0.0;
};

}  // namespace

bool supports_interior_point(const LocalObjective& objective) {
  const double q = objective.spread_norm();
  const bool cones = q == 2.0 || (!objective.loss()->traits().quantile_dual && (q == 1.0 || std::isinf(q)));
  return objective.loss()->traits().has_dual() && !objective.has_variances() && cones;
}

Result run_interior_point(const LocalObjective& objective, const Moments& about, const LinearModel& /*start*/,
                          const BatchSettings& settings) {
  Result result;
  result.model = LinearModel(objective.n_problems(), objective.n_features());
  Vector lower(objective.n_problems());
  Vector value(objective.n_problems());
  for (Index k = 0; k < objective.n_problems(); ++k) {
    const Attempts problem(objective.only(k), about, settings);
    result.steps = std::max(result.steps, problem.steps());
    result.model.coef.row(k) = problem.coef();
    result.model.intercept(k) = problem.intercept();
    lower(k) = problem.lower_bound();
    value(k) = problem.value();
  }
  result.epochs = result.steps;
  certify(objective, lower, settings, result);
  Result balanced = result;  // rounding may let the exact intercept be worse
  balanced.model.intercept = objective.exact_intercept(result.model.coef, result.model.intercept);
  certify(objective, lower, settings, balanced);
  const Rounding rounding(objective, about);
  for (Index k = 0; k < objective.n_problems(); ++k) {
    result.take(balanced.only(k), k);
    // Factors tell a spread of 0 from what cancellation leaves of w'S w.
    const double noise = rounding.of_spreads(objective.only(k), result.only(k).model);
    if (result.objective(k) - value(k) <= noise) result.objective(k) = std::min(result.objective(k), value(k));
  }
  judge(settings, result);
  return result;
}

}  // namespace halosvm
