#include "halosvm/calibration.hpp"

#include "halosvm/check.hpp"

#include <cmath>

namespace halosvm {
namespace {

constexpr double pi = 3.14159265358979323846;

/// 1 / (1 + exp(u)) without overflow.
double descending_sigmoid(double u) {
  if (u < 0.0) return 1.0 / (1.0 + std::exp(u));
  const double e = std::exp(-u);
  return e / (1.0 + e);
}

/// The negative log-likelihood with soft targets, and its derivatives.
class Likelihood {
 public:
  Likelihood(const ConstVectorRef& decision, const std::uint8_t* positive, const double* weights)
      : decision_(decision), positive_(positive), weights_(weights) {
    for (Index i = 0; i < decision.size(); ++i) {
      const double c = weight(i);
      if (!std::isfinite(decision(i))) check::fail_at("decision", i, -1, decision(i), "it must be finite");
      if (!(c >= 0.0) || !std::isfinite(c)) check::fail_at("weights", i, -1, c, "a weight must be >= 0 and finite");
      (positive_[i] != 0 ? total_positive_ : total_negative_) += c;
    }
    check::require(total_positive_ + total_negative_ > 0.0, "weights", "must have a positive sum");
    target_positive_ = (total_positive_ + 1.0) / (total_positive_ + 2.0);
    target_negative_ = 1.0 / (total_negative_ + 2.0);
  }

  bool one_class() const { return total_positive_ == 0.0 || total_negative_ == 0.0; }
  /// The probability of y = 1 when all examples are of one class.
  double constant_probability() const { return total_negative_ == 0.0 ? target_positive_ : target_negative_; }
  double start_offset() const { return std::log((total_negative_ + 1.0) / (total_positive_ + 1.0)); }

  double value(const PlattScaling& at) const {
    double sum = 0.0;
    for (Index i = 0; i < decision_.size(); ++i) {
      const double u = at.slope * decision_(i) + at.offset;
      const double t = target(i);
      sum += weight(i) * (u >= 0.0 ? t * u + std::log1p(std::exp(-u)) : (t - 1.0) * u + std::log1p(std::exp(u)));
    }
    return sum;
  }

  void derivatives(const PlattScaling& at, Eigen::Vector2d& gradient, Eigen::Matrix2d& hessian) const {
    gradient.setZero();
    hessian = 1e-12 * Eigen::Matrix2d::Identity();
    for (Index i = 0; i < decision_.size(); ++i) {
      const double u = at.slope * decision_(i) + at.offset;
      const double p = descending_sigmoid(u);
      const double curvature = weight(i) * p * descending_sigmoid(-u);
      const Eigen::Vector2d direction(decision_(i), 1.0);
      gradient += weight(i) * (target(i) - p) * direction;
      hessian += curvature * direction * direction.transpose();
    }
  }

 private:
  double weight(Index i) const { return weights_ != nullptr ? weights_[i] : 1.0; }
  double target(Index i) const { return positive_[i] != 0 ? target_positive_ : target_negative_; }

  const ConstVectorRef& decision_;
  const std::uint8_t* positive_;
  const double* weights_;
  double total_positive_ = 0.0;
  double total_negative_ = 0.0;
  double target_positive_ = 0.0;
  double target_negative_ = 0.0;
};

}  // namespace

double PlattScaling::probability(double f) const { return descending_sigmoid(slope * f + offset); }

double PlattScaling::expected_probability(double mean, double std) const {
  const double width = slope * std;
  return descending_sigmoid((slope * mean + offset) / std::sqrt(1.0 + pi * width * width / 8.0));
}

PlattScaling fit_platt(const ConstVectorRef& decision, const std::uint8_t* positive, const double* weights) {
  constexpr int max_iterations = 100;
  constexpr double smallest_gradient = 1e-5;
  constexpr int most_halvings = 33;  // down to a step of 1e-10
  constexpr double sufficient_decrease = 1e-4;

  const Likelihood likelihood(decision, positive, weights);
  if (likelihood.one_class()) {
    const double p = likelihood.constant_probability();
    return {0.0, std::log((1.0 - p) / p)};
  }
  PlattScaling at{0.0, likelihood.start_offset()};
  double value = likelihood.value(at);
  for (int iteration = 0; iteration < max_iterations; ++iteration) {
    Eigen::Vector2d gradient;
    Eigen::Matrix2d hessian;
    likelihood.derivatives(at, gradient, hessian);
    if (gradient.cwiseAbs().maxCoeff() < smallest_gradient) break;
    const double determinant = hessian(0, 0) * hessian(1, 1) - hessian(0, 1) * hessian(0, 1);
    const Eigen::Vector2d step(-(hessian(1, 1) * gradient(0) - hessian(0, 1) * gradient(1)) / determinant,
                               -(hessian(0, 0) * gradient(1) - hessian(0, 1) * gradient(0)) / determinant);
    const double descent = gradient.dot(step);
    double length = 1.0;
    int halvings = 0;
    for (; halvings <= most_halvings; ++halvings) {
      const PlattScaling next{at.slope + length * step(0), at.offset + length * step(1)};
      const double next_value = likelihood.value(next);
      if (next_value < value + sufficient_decrease * length * descent) {
        at = next;
        value = next_value;
        break;
      }
      length *= 0.5;
    }
    if (halvings > most_halvings) break;
  }
  return at;
}

}  // namespace halosvm
