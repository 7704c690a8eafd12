#include "halosvm/lbfgs.hpp"

#include "halosvm/check.hpp"
#include "halosvm/moments.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

namespace halosvm {
namespace {

constexpr std::size_t memory_pairs = 20;
constexpr double smallest_floor = 1e-6;
constexpr Index few_passes = 30;    ///< a minimum with small but finite scores is certified before
constexpr Index patience = 250;     ///< passes after which kinks are taken for the reason why there is no end
constexpr double no_slope = 1e-10;  ///< a slope in b that is only rounding

/// One problem's walk over u = (w, intercept for centred means). It proposes a point; whoever owns the data evaluates
/// it and reports value and gradient.
class Descent {
 public:
  Descent(Vector start, Vector variance, double regularisation)
      : at_(std::move(start)), variance_(std::move(variance)), regularisation_(regularisation), trial_(at_) {}

  const Vector& trial() const { return trial_; }
  const Vector& at() const { return at_; }
  /// Whether any step has been taken from the start.
  bool has_moved() const { return !pairs_.empty(); }
  /// No step lowers the value any more.
  bool exhausted() const { return exhausted_; }

  /// Forgets curvature: the function has changed.
  void restart() {
    pairs_.clear();
    started_ = false;
    exhausted_ = false;
    trial_ = at_;
  }

  /// Moves to a point that is known to be no worse, and continues from there once it is evaluated.
  void jump(const Vector& point) {
    trial_ = point;
    length_ = 0.0;
    jumped_ = true;
  }

  /// Takes in value, gradient and mean curvature at the trial point, and proposes the next one.
  void observe(double value, const Vector& gradient, double curvature) {
    if (started_ && !jumped_ && !accepted(value, gradient)) {
      shorten(value);
      return;
    }
    if (started_) remember(trial_ - at_, gradient - gradient_);
    started_ = true;
    jumped_ = false;
    at_ = trial_;
    value_ = value;
    gradient_ = gradient;
    direction_ = -scaled(gradient, curvature);
    slope_ = direction_.dot(gradient);
    if (!(slope_ < 0.0)) {
      pairs_.clear();
      direction_ = -scaled(gradient, curvature);
      slope_ = direction_.dot(gradient);
    }
    length_ = 1.0;
    trial_ = at_ + direction_;
  }

 private:
  /// Armijo's condition, with room for rounding near the optimum, where the slope decides.
  bool accepted(double value, const Vector& gradient) const {
    if (!std::isfinite(value)) return false;
    if (value <= value_ + 1e-4 * length_ * slope_) return true;
    const double rounding = 1e-13 * std::abs(value_);
    return value <= value_ + rounding && std::abs(gradient.dot(direction_)) <= std::abs(slope_);
  }

  void shorten(double value) {
    const double bend = value - value_ - length_ * slope_;
    const double best = std::isfinite(bend) && bend > 0.0 ? -slope_ * length_ * length_ / (2.0 * bend) : 0.0;
    length_ = std::clamp(best, 0.1 * length_, 0.5 * length_);
    trial_ = at_ + length_ * direction_;
    if (length_ < 1e-12) exhausted_ = true;
  }

  void remember(Vector step, Vector change) {
    const double product = step.dot(change);
    if (!(product > 1e-14 * step.norm() * change.norm())) return;
    if (pairs_.size() == memory_pairs) pairs_.pop_front();
    pairs_.push_back({std::move(step), std::move(change), 1.0 / product});
  }

  /// The inverse Hessian times a gradient: two loops around a diagonal model.
  Vector scaled(Vector q, double curvature) const {
    // Before there is curvature (w = 0), that of a spread of order 1 is assumed; the line search corrects it.
    const double kappa = curvature > 0.0 ? std::max(curvature, 0.1) : 1.0;
    const Vector diagonal = (kappa * variance_.array() + regularisation_).matrix();
    std::vector<double> alpha(pairs_.size());
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      alpha[i] = pairs_[i].inverse_product * pairs_[i].step.dot(q);
      q -= alpha[i] * pairs_[i].change;
    }
    q = q.cwiseQuotient(diagonal);
    if (!pairs_.empty()) {
      const Pair& last = pairs_.back();
      q /= last.inverse_product * last.change.dot(last.change.cwiseQuotient(diagonal));
    }
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      q += (alpha[i] - pairs_[i].inverse_product * pairs_[i].change.dot(q)) * pairs_[i].step;
    }
    return q;
  }

  struct Pair {
    Vector step;
    Vector change;
    double inverse_product;
  };

  Vector at_;
  Vector variance_;
  double regularisation_;
  Vector trial_;
  Vector gradient_;
  Vector direction_;
  double value_ = 0.0;
  double slope_ = 0.0;
  double length_ = 0.0;
  bool started_ = false;
  bool jumped_ = false;
  bool exhausted_ = false;
  std::deque<Pair> pairs_;
};

class Lbfgs {
 public:
  Lbfgs(const Objective& objective, const LinearModel& start, const BatchSettings& settings)
      : objective_(objective),
        settings_(settings),
        n_problems_(objective.n_problems()),
        d_(objective.n_features()),
        current_(objective),
        gradient_(n_problems_, d_),
        lower_(Vector::Constant(n_problems_, -infinity)),
        best_value_(Vector::Constant(n_problems_, infinity)) {
    const Moments about = moments(objective);
    centre_ = about.centre;
    Vector variance(d_ + 1);
    variance << about.variance.cwiseMax(1e-300), 1.0;
    for (Index k = 0; k < n_problems_; ++k) {
      Vector u(d_ + 1);
      u << start.coef.row(k).transpose(), start.intercept(k) + start.coef.row(k).dot(centre_);
      walks_.emplace_back(std::move(u), variance, objective.regularisation());
    }
    variance_ = variance;
    set_floor(objective.all_certain() ? 1.0 : 0.0);
  }

  Result run() {
    Result result;
    result.model = LinearModel(n_problems_, d_);
    bool balanced = false;  // the trial points have the exact bias of their coefficients
    for (Index pass = 1;; ++pass) {
      evaluate();
      if (balanced || !objective_.fit_intercept()) note_bounds();
      result.steps = pass;
      if (settings_.report) settings_.report({pass, gradient_.value.maxCoeff(), gap()});
      if (gap() <= settings_.tolerance || pass >= settings_.max_iterations || vanishing(pass)) break;

      if (all_exhausted()) {  // rounding ends the search on this floor
        if (!(floor_ > smallest_floor)) break;
        lower_the_floor(0.3 * floor_);
        balanced = false;
        continue;
      }
      if (floor_ == 0.0 && ((balanced && kinked()) || pass == patience)) {  // some examples are certain after all
        lower_the_floor(0.1);
        balanced = false;
        continue;
      }
      const std::vector<bool> near_each = near_optimum();
      const bool near = std::all_of(near_each.begin(), near_each.end(), [](bool one) { return one; });
      if ((balanced || !objective_.fit_intercept()) && near && floor_ > 0.0 && floor_ > smallest_floor) {
        lower_the_floor(0.3 * floor_);
        balanced = false;
        continue;
      }
      observe(near_each, near);
      balanced = near && !balanced && objective_.fit_intercept();
      if (balanced) balance();
    }
    const bool zero = vanishing(result.steps);
    result.model.coef = zero ? Matrix::Zero(n_problems_, d_) : best_coef_;
    result.model.intercept = objective_.exact_bias(result.model.coef, best_intercept_);
    certify(objective_, lower_.cwiseMax(0.0), settings_.tolerance, result);
    if (zero) result.status = Status::zero_model;
    result.epochs = result.steps;
    return result;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  void set_floor(double floor) {
    floor_ = floor;
    current_ = floor > 0.0 ? objective_.smoothed(floor) : objective_;
  }

  /// Another function from here on.
  void lower_the_floor(double floor) {
    set_floor(floor);
    for (Descent& walk : walks_) walk.restart();
  }

  /// Whether the exact bias is at a kink, where the gradient does not vanish.
  bool kinked() const { return objective_.fit_intercept() && gradient_.intercept.cwiseAbs().maxCoeff() > no_slope; }

  LinearModel trial_model() const {
    LinearModel model(n_problems_, d_);
    for (Index k = 0; k < n_problems_; ++k) {
      const Vector& u = walks_[static_cast<std::size_t>(k)].trial();
      model.coef.row(k) = u.head(d_).transpose();
      model.intercept(k) = objective_.fit_intercept() ? u(d_) - u.head(d_).dot(centre_) : 0.0;
    }
    return model;
  }

  void evaluate() {
    model_ = trial_model();
    current_.value_and_gradient(model_.coef, model_.intercept, gradient_);
    if (best_coef_.size() == 0) {
      best_coef_ = model_.coef;
      best_intercept_ = model_.intercept;
    }
    for (Index k = 0; k < n_problems_; ++k) {
      if (!(gradient_.value(k) < best_value_(k))) continue;  // a floored value is an upper bound of the true one
      best_value_(k) = gradient_.value(k);
      best_coef_.row(k) = model_.coef.row(k);
      best_intercept_(k) = model_.intercept(k);
    }
  }

  /// A dual bound needs sum c theta y = 0, which the exact bias gives except at kinks.
  void note_bounds() {
    const Vector bound = current_.dual_bound(model_.coef, gradient_, centre_);
    for (Index k = 0; k < n_problems_; ++k) {
      if (std::abs(gradient_.intercept(k)) <= no_slope) lower_(k) = std::max(lower_(k), bound(k));
    }
  }

  /// Certified suboptimality of the worst problem.
  double gap() const {
    double worst = 0.0;
    for (Index k = 0; k < n_problems_; ++k) {
      worst = std::max(worst, lower_(k) > 0.0 ? (best_value_(k) - lower_(k)) / lower_(k) : infinity);
    }
    return worst;
  }

  /// Whether, but for the bias, the smooth problems of this floor are solved: to the tolerance, or to a tenth of the
  /// gap that the floor itself leaves.
  std::vector<bool> near_optimum() const {
    const Vector bound = current_.dual_bound(model_.coef, gradient_, centre_);
    std::vector<bool> near;
    for (Index k = 0; k < n_problems_; ++k) {
      const double open = gradient_.coef.row(k).squaredNorm() / (2.0 * objective_.regularisation());
      const double target = std::max(0.5 * settings_.tolerance * gradient_.value(k),
                                     floor_ > 0.0 ? 0.1 * (gradient_.value(k) - bound(k)) : 0.0);
      near.push_back(open <= target);
    }
    return near;
  }

  /// Moves the walks on. Those that are near wait for the others: steps that only rounding decides would make results
  /// depend on the instruction set.
  void observe(const std::vector<bool>& near, bool all_near) {
    for (Index k = 0; k < n_problems_; ++k) {
      if (near[static_cast<std::size_t>(k)] && !all_near) continue;
      Vector gradient(d_ + 1);
      gradient << gradient_.coef.row(k).transpose() - gradient_.intercept(k) * centre_, gradient_.intercept(k);
      walks_[static_cast<std::size_t>(k)].observe(gradient_.value(k), gradient, gradient_.curvature(k));
    }
  }

  /// Moves all walks to the exact bias of where they are.
  void balance() {
    LinearModel model(n_problems_, d_);
    for (Index k = 0; k < n_problems_; ++k) {
      const Vector& u = walks_[static_cast<std::size_t>(k)].at();
      model.coef.row(k) = u.head(d_).transpose();
      model.intercept(k) = u(d_) - u.head(d_).dot(centre_);
    }
    const Vector exact = current_.exact_bias(model.coef, model.intercept);
    for (Index k = 0; k < n_problems_; ++k) {
      Vector u = walks_[static_cast<std::size_t>(k)].at();
      u(d_) = exact(k) + u.head(d_).dot(centre_);
      walks_[static_cast<std::size_t>(k)].jump(u);
    }
  }

  /// Whether all scores have shrunk to nothing. The gradient does not vanish there, since spreads have a kink at w = 0.
  bool vanishing(Index pass) const {
    constexpr double nothing = 1e-6;
    return pass >= few_passes && floor_ == 0.0 && std::all_of(walks_.begin(), walks_.end(), [&](const Descent& walk) {
             return walk.has_moved() && walk.at().head(d_).cwiseAbs2().dot(variance_.head(d_)) < nothing * nothing;
           });
  }

  bool all_exhausted() const {
    return std::all_of(walks_.begin(), walks_.end(), [](const Descent& walk) { return walk.exhausted(); });
  }

  const Objective& objective_;
  const BatchSettings& settings_;
  Index n_problems_;
  Index d_;
  double floor_ = 0.0;
  Objective current_;  ///< with the present floor
  Vector centre_;
  Vector variance_;
  std::vector<Descent> walks_;
  LinearModel model_;
  Gradient gradient_;
  Vector lower_;
  Vector best_value_;
  Matrix best_coef_;
  Vector best_intercept_ = Vector::Zero(n_problems_);
};

}  // namespace

Result minimize_lbfgs(const Objective& objective, const LinearModel& start, const BatchSettings& settings) {
  check_start(objective, start);
  return Lbfgs(objective, start, settings).run();
}

}  // namespace halosvm
