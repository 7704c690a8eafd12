// The two-loop recursion and line search of one problem: values and gradients come in, trial points go out.

#include "solver/lbfgs/descent.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace halosvm {
namespace {

constexpr std::size_t memory_pairs = 20;
constexpr double rounding = 1e-13;

}  // namespace

Descent::Descent(Vector start, Vector variance, double regularisation)
    : at_(std::move(start)), variance_(std::move(variance)), regularisation_(regularisation), trial_(at_) {}

void Descent::restart() {
  started_ = false;
  exhausted_ = false;
  if (jumped_) at_ = trial_;
  trial_ = at_;
}

void Descent::jump(const Vector& point) {
  trial_ = point;
  length_ = 0.0;
  jumped_ = true;
}

void Descent::observe(double value, const Vector& gradient, double curvature) {
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
  curvature_ = curvature;
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

/// Armijo's condition, with room for rounding near the optimum, where the slope decides.
bool Descent::accepted(double value, const Vector& gradient) const {
  if (!std::isfinite(value)) return false;
  if (value <= value_ + 1e-4 * length_ * slope_) return true;
  return value <= value_ + rounding * std::abs(value_) && std::abs(gradient.dot(direction_)) <= std::abs(slope_);
}

bool Descent::leads(double value) const {
  return !started_ || jumped_ || value <= value_ + rounding * std::abs(value_);
}

void Descent::shorten(double value) {
  const double bend = value - value_ - length_ * slope_;
  const double best = std::isfinite(bend) && bend > 0.0 ? -slope_ * length_ * length_ / (2.0 * bend) : 0.0;
  length_ = std::clamp(best, 0.1 * length_, 0.5 * length_);
  trial_ = at_ + length_ * direction_;
  if (length_ < 1e-12) exhausted_ = true;
}

void Descent::remember(Vector step, Vector change) {
  const double product = step.dot(change);
  if (!(product > 1e-14 * step.norm() * change.norm())) return;
  if (pairs_.size() == memory_pairs) pairs_.pop_front();
  pairs_.push_back({std::move(step), std::move(change), 1.0 / product});
}

/// The inverse of the model of the Hessian times a vector.
Vector Descent::modelled(const Vector& q, double curvature) const {
  if (factor_) return factor_->solve(q) / scale_;
  // Before there is curvature (w = 0), that of a spread of order 1 is assumed; the line search corrects it.
  const double kappa = curvature > 0.0 ? std::max(curvature, 0.1) : 1.0;
  Vector diagonal = kappa * variance_;
  diagonal.head(diagonal.size() - 1).array() += regularisation_;
  return q.cwiseQuotient(diagonal);
}

/// The inverse Hessian times a gradient: two loops around the model.
Vector Descent::scaled(Vector q, double curvature) const {
  std::vector<double> alpha(pairs_.size());
  for (std::size_t i = pairs_.size(); i-- > 0;) {
    alpha[i] = pairs_[i].inverse_product * pairs_[i].step.dot(q);
    q -= alpha[i] * pairs_[i].change;
  }
  q = modelled(q, curvature);
  if (!pairs_.empty()) {
    const Pair& last = pairs_.back();
    q /= last.inverse_product * last.change.dot(modelled(last.change, curvature));
  }
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    q += (alpha[i] - pairs_[i].inverse_product * pairs_[i].change.dot(q)) * pairs_[i].step;
  }
  return q;
}

}  // namespace halosvm
