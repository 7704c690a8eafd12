// Calibration: decision values, labels and weights come in, a logistic curve goes out; probabilities by any curve.

#include "halosvm/model/calibration.hpp"

#include "halosvm/core/check.hpp"
#include "halosvm/core/logistic.hpp"
#include "halosvm/core/normal.hpp"
#include "halosvm/loss/loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halosvm {
namespace {

/// 1 / (1 + exp(u)) without overflow.
double descending_sigmoid(double u) {
  if (u < 0.0) return 1.0 / (1.0 + std::exp(u));
  const double e = std::exp(-u);
  return e / (1.0 + e);
}

/// The negative log-likelihood with soft targets, and its derivatives, of decision values in a unit of their own,
/// (f / unit - centre) / width. Rows of weight 0 are left out.
class Likelihood {
 public:
  Likelihood(const ConstVectorRef& decision, const std::uint8_t* positive, const double* weights) {
    Index used = 0;
    decision_.resize(decision.size());
    weights_.resize(decision.size());
    targets_.resize(decision.size());
    for (Index i = 0; i < decision.size(); ++i) {
      const double c = weights != nullptr ? weights[i] : 1.0;
      if (!std::isfinite(decision(i))) check::fail_at("decision", i, -1, decision(i), "it must be finite");
      if (!(c >= 0.0) || !std::isfinite(c)) check::fail_at("weights", i, -1, c, "a weight must be >= 0 and finite");
      if (c == 0.0) continue;
      (positive[i] != 0 ? total_positive_ : total_negative_) += c;
      decision_(used) = decision(i);
      weights_(used) = c;
      targets_(used++) = positive[i] != 0 ? 1.0 : 0.0;
    }
    check::require(used > 0, "weights", "must have a positive sum");
    decision_.conservativeResize(used);
    weights_.conservativeResize(used);
    targets_.conservativeResize(used);
    target_positive_ = (total_positive_ + 1.0) / (total_positive_ + 2.0);
    target_negative_ = 1.0 / (total_negative_ + 2.0);
    targets_ = (targets_.array() > 0.0).select(target_positive_, Vector::Constant(used, target_negative_));
    standardise();
  }

  double total() const { return total_positive_ + total_negative_; }
  bool one_class() const { return total_positive_ == 0.0 || total_negative_ == 0.0; }
  /// The probability of y = 1 when all examples are of one class.
  double constant_probability() const { return total_negative_ == 0.0 ? target_positive_ : target_negative_; }
  double start_offset() const { return std::log((total_negative_ + 1.0) / (total_positive_ + 1.0)); }

  /// The same probabilities for decision values in their own unit.
  PlattScaling in_given_unit(const PlattScaling& at) const {
    const double slope = at.slope / width_ / unit_;
    return {slope, at.offset - at.slope * (centre_ / width_)};
  }

  double value(const PlattScaling& at) const {
    double sum = 0.0;
    for (Index i = 0; i < decision_.size(); ++i) {
      const double u = at.slope * decision_(i) + at.offset;
      const double t = targets_(i);
      sum += weights_(i) * (u >= 0.0 ? t * u + std::log1p(std::exp(-u)) : (t - 1.0) * u + std::log1p(std::exp(u)));
    }
    return sum;
  }

  void derivatives(const PlattScaling& at, Eigen::Vector2d& gradient, Eigen::Matrix2d& hessian) const {
    gradient.setZero();
    hessian.setZero();
    for (Index i = 0; i < decision_.size(); ++i) {
      const double u = at.slope * decision_(i) + at.offset;
      const double p = descending_sigmoid(u);
      const double curvature = weights_(i) * p * descending_sigmoid(-u);
      const Eigen::Vector2d direction(decision_(i), 1.0);
      gradient += weights_(i) * (targets_(i) - p) * direction;
      hessian += curvature * direction * direction.transpose();
    }
    constexpr double ridge = 1e-12;
    hessian.diagonal() += Eigen::Vector2d::Constant(ridge * hessian.trace() + std::numeric_limits<double>::min());
  }

 private:
  /// What all values have in common is taken off before anything is rounded, so that equal ones become 0.
  void standardise() {
    const double largest = decision_.cwiseAbs().maxCoeff();
    if (largest > 0.0) unit_ = std::ldexp(1.0, std::ilogb(largest));
    decision_ /= unit_;
    const double first = decision_(0);
    decision_.array() -= first;
    const double mean = decision_.dot(weights_ / total());
    decision_.array() -= mean;
    centre_ = first + mean;
    const double widest = decision_.cwiseAbs().maxCoeff();
    if (widest > 0.0) width_ = widest;
    decision_ /= width_;
  }

  Vector decision_;  ///< less their mean, and divided by the largest distance from it
  Vector weights_;
  Vector targets_;
  double unit_ = 1.0;
  double centre_ = 0.0;
  double width_ = 1.0;
  double total_positive_ = 0.0;
  double total_negative_ = 0.0;
  double target_positive_ = 0.0;
  double target_negative_ = 0.0;
};

/// E max(0, m + s Z) for s > 0.
double expected_positive_part(double m, double s) {
  const Ratio z = exact_ratio(m, s);
  const double sign = z.value < 0.0 ? -1.0 : 1.0;
  return std::max(m, 0.0) + s * normal_tail(sign * z.value, sign * z.error).hinge;
}

}  // namespace

double PlattScaling::probability(double f) const { return descending_sigmoid(slope * f + offset); }

double PlattScaling::expected_probability(double mean, double std) const {
  // The logistic law is nearly a mixture of normal laws, of which expectations are normal again (spec K.5).
  const auto mixture = [](double u, double unit, double width) {
    double sum = 0.0;
    for (int k = 0; k < 3; ++k) {
      const double own = unit * std::sqrt(LogisticMixture::variances[k]);
      sum += LogisticMixture::shares[k] * normal_cdf(-u / std::hypot(own, width));
    }
    return sum;
  };
  if (std::isnan(mean)) check::fail("mean", "is nan");
  if (!(std >= 0.0)) check::not_negative("std", std);
  const double size = std::abs(slope);
  const double width = size * std;
  const double u = slope * mean + offset;
  if (!std::isfinite(width) || !std::isfinite(u)) {  // in units of 1 / |A|, which is below 1 here
    return mixture(std::copysign(mean, mean * slope) + offset / size, 1.0 / size, std);
  }
  // What is known to be off without errors is taken off as long as errors are small.
  const double off = mixture(u, 1.0, 0.0) - descending_sigmoid(u);
  return std::clamp(mixture(u, 1.0, width) - std::exp(-1.5 * width * width) * off, 0.0, 1.0);
}

double IsotonicCurve::expected_probability(double mean, double std) const {
  check::same_size("heights", heights.size(), "at", at.size(), "points");
  check::require(at.size() > 0, "at", "is empty");
  if (std::isnan(mean)) check::fail("mean", "is nan");
  if (!(std >= 0.0)) check::not_negative("std", std);
  const Index last = at.size() - 1;
  if (std < smallest_spread) {
    const Index after = std::upper_bound(at.data(), at.data() + at.size(), mean) - at.data();
    if (after == 0) return heights(0);
    if (after > last) return heights(last);
    const double slope = (heights(after) - heights(after - 1)) / (at(after) - at(after - 1));
    return slope * (mean - at(after - 1)) + heights(after - 1);
  }
  // Each piece has its slope times the difference of two expected hinges; one that is much narrower than the law, where
  // these cancel, its rise times the probability of what is above its middle.
  constexpr double narrow = 1e-3;
  double sum = heights(0);
  for (Index k = 0; k < last; ++k) {
    const double width = at(k + 1) - at(k);
    const double below = mean - at(k);
    const double above = mean - at(k + 1);
    const bool cancels = width < narrow * std;
    const double share = cancels ? normal_cdf(0.5 * (below + above) / std)
                                 : (expected_positive_part(below, std) - expected_positive_part(above, std)) / width;
    sum += share * (heights(k + 1) - heights(k));
  }
  return sum;
}

Matrix probabilities(const std::vector<Curve>& curves, const ConstMatrixRef& scores, const ConstMatrixRef& stds) {
  const Index n_columns = scores.cols();
  check::same_size("stds", stds.rows(), "scores", scores.rows(), "rows");
  check::same_size("stds", stds.cols(), "scores", n_columns, "columns");
  check::require(n_columns > 0 && !curves.empty(), "curves", "or scores are none");
  const auto* temperature = std::get_if<Temperature>(curves.data());
  const Index n_curves = temperature != nullptr ? 1 : n_columns;
  check::same_size("curves", static_cast<Index>(curves.size()), "scores", n_curves, "classes");
  const auto value = [&](Index i, Index k) {
    const auto of_curve = [&](const auto& curve) { return curve.expected_probability(scores(i, k), stds(i, k)); };
    return std::visit(of_curve, curves[static_cast<std::size_t>(k)]);
  };
  if (n_columns == 1) {
    Matrix out(scores.rows(), 2);
    for (Index i = 0; i < out.rows(); ++i) {
      out(i, 1) = value(i, 0);
      out(i, 0) = 1.0 - out(i, 1);
    }
    return out;
  }
  check::require((stds.array() == 0.0).all(), "stds",
                 "are not 0: of more than two classes the probabilities of certain examples alone are computed here");
  Matrix out(scores.rows(), n_columns);
  for (Index i = 0; i < out.rows(); ++i) {
    if (temperature != nullptr) {
      out.row(i) = ((scores.row(i).array() - scores.row(i).maxCoeff()) / temperature->temperature).exp();
    } else {
      for (Index k = 0; k < n_columns; ++k) out(i, k) = value(i, k);
    }
    const double total = out.row(i).sum();
    if (total > 0.0) {
      out.row(i) /= total;
    } else {
      out.row(i).setConstant(1.0 / static_cast<double>(n_columns));
    }
  }
  return out;
}

PlattScaling fit_platt(const ConstVectorRef& decision, const std::uint8_t* positive, const double* weights) {
  constexpr int max_iterations = 100;
  constexpr double smallest_descent = 1e-24;  // relative to the sum of weights
  constexpr int most_halvings = 33;           // down to a step of 1e-10
  constexpr double sufficient_decrease = 1e-4;
  constexpr double rounding = 4.0 * std::numeric_limits<double>::epsilon();  // of a value, relative to it

  if (decision.size() > 0) check::given(positive, "positive");
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
    const double determinant = hessian(0, 0) * hessian(1, 1) - hessian(0, 1) * hessian(0, 1);
    const Eigen::Vector2d step(-(hessian(1, 1) * gradient(0) - hessian(0, 1) * gradient(1)) / determinant,
                               -(hessian(0, 0) * gradient(1) - hessian(0, 1) * gradient(0)) / determinant);
    // Twice what the step will gain, which unlike the gradient does not depend on any unit.
    const double descent = gradient.dot(step);
    if (!(-descent > smallest_descent * likelihood.total())) break;
    double length = 1.0;
    int halvings = 0;
    for (; halvings <= most_halvings; ++halvings) {
      const PlattScaling next{at.slope + length * step(0), at.offset + length * step(1)};
      const double next_value = likelihood.value(next);
      if (next_value <= (1.0 + rounding) * value + sufficient_decrease * length * descent) {
        at = next;
        value = next_value;
        break;
      }
      length *= 0.5;
    }
    if (halvings > most_halvings) break;
  }
  const PlattScaling fitted = likelihood.in_given_unit(at);
  check::require(std::isfinite(fitted.slope), "decision", "has values that differ by less than 1e-300; multiply them");
  return fitted;
}

}  // namespace halosvm
