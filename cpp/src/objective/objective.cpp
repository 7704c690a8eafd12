// What all objectives share: sums of evaluations, and searches that need nothing but evaluations.

#include "halosvm/objective/objective.hpp"

#include "halosvm/core/check.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace halosvm {

Evaluation::Evaluation(Index n_problems, Index n_features)
    : value(n_problems),
      slope(n_problems),
      square(n_problems),
      dual(n_problems),
      dual_positive(n_problems),
      dual_size(n_problems),
      curvature(n_problems),
      coef(n_problems, n_features),
      intercept(n_problems) {
  set_zero();
}

void Evaluation::set_zero() {
  for (Vector* part : {&value, &slope, &square, &dual, &dual_positive, &dual_size, &curvature, &intercept}) {
    part->setZero();
  }
  coef.setZero();
}

void Evaluation::add(const Evaluation& other, double share) {
  value += share * other.value;
  slope += share * other.slope;
  square += share * other.square;
  dual += share * other.dual;
  dual_positive += share * other.dual_positive;
  dual_size += share * other.dual_size;
  curvature += share * other.curvature;
  coef += share * other.coef;
  intercept += share * other.intercept;
}

void Evaluation::check_shape(const std::string& argument, Index n_problems, Index n_features) const {
  for (const Vector* part : {&value, &slope, &square, &dual, &dual_positive, &dual_size, &curvature, &intercept}) {
    check::same_size(argument, part->size(), "objective", n_problems, "problems");
  }
  check::same_size(argument, coef.rows(), "objective", n_problems, "problems");
  check::same_size(argument, coef.cols(), "objective", n_features, "features");
}

void Objective::check_point(const ConstMatrixRef& W, const ConstVectorRef& b) const {
  check::same_size("coef", W.rows(), "objective", n_problems(), "problems");
  check::same_size("coef", W.cols(), "objective", n_features(), "features");
  check::same_size("intercept", b.size(), "objective", n_problems(), "problems");
}

double Objective::value_at_origin() const {
  const double m = loss()->traits().margin;
  const double s = 0.0;
  double value = 0.0;
  double slope_m = 0.0;
  double slope_s2 = 0.0;
  loss()->first(1, &m, &s, &value, &slope_m, &slope_s2);
  return value;
}

Vector Objective::value_at_zero() const {
  const Matrix zero = Matrix::Zero(n_problems(), n_features());
  Evaluation at(n_problems(), n_features());
  evaluate(zero, exact_intercept(zero, Vector::Zero(n_problems()), 0.0), 0.0, at);
  return at.value;
}

namespace {

/// The root of a slope that never decreases, between points that come nearer to each other.
struct Bracket {
  double low = -infinity;
  double high = infinity;
  double at_low = 0.0;
  double at_high = 0.0;
  double step = 1.0;
  double last = infinity;
  int side = 0;  ///< which end moved last
  bool done = false;

  /// Takes the slope at b and returns where to look next: Newton's step if it stays inside, is not long and the last
  /// one paid, otherwise steps that double until the root is enclosed, then the Illinois variant of regula falsi.
  /// \param size of the terms of the slope. \param curvature its derivative where the loss is a mean over a normal law.
  double next(double b, double slope, double size, double curvature) {
    done = std::abs(slope) <= 1e-13 * size;
    if (done) return b;
    const bool slow = std::abs(slope) > 0.5 * last;
    last = std::abs(slope);
    if (slope < 0.0) {
      low = b;
      at_low = slope;
      if (side < 0) at_high *= 0.5;
      side = -1;
    } else {
      high = b;
      at_high = slope;
      if (side > 0) at_low *= 0.5;
      side = 1;
    }
    const double newton = curvature > 0.0 ? b - slope / curvature : infinity;
    if (!slow && newton > low && newton < high && std::abs(newton - b) <= 2.0 * step) return newton;
    step *= 2.0;
    if (!std::isfinite(low)) return high - step;
    if (!std::isfinite(high)) return low + step;
    const double middle = 0.5 * (low + high);
    done = high - low <= 4e-16 * std::max(std::abs(low), std::abs(high)) || middle == low || middle == high;
    const double between = (low * at_high - high * at_low) / (at_high - at_low);
    return between > low && between < high ? between : middle;
  }
};

}  // namespace

Vector Objective::exact_intercept(const ConstMatrixRef& W, const ConstVectorRef& guess, double floor) const {
  if (!fit_intercept()) return Vector::Zero(n_problems());
  constexpr int passes = 100;
  constexpr double smooth = 1e-9;  // a smaller slope tells more of a root than values do; kinks have larger ones
  Vector b = guess;
  Vector flattest = b;
  Vector lowest = b;
  Vector slope = Vector::Constant(n_problems(), infinity);
  Vector value = slope;
  std::vector<Bracket> brackets(static_cast<std::size_t>(n_problems()));
  Evaluation at(n_problems(), n_features());
  for (int pass = 0; pass < passes; ++pass) {
    evaluate(W, b, floor, at);
    bool all_done = true;
    for (Index k = 0; k < n_problems(); ++k) {
      Bracket& bracket = brackets[static_cast<std::size_t>(k)];
      if (const double relative = std::abs(at.intercept(k)) / at.slope(k); relative < slope(k)) {
        slope(k) = relative;
        flattest(k) = b(k);
      }
      if (at.value(k) < value(k)) {
        value(k) = at.value(k);
        lowest(k) = b(k);
      }
      if (!bracket.done) b(k) = bracket.next(b(k), at.intercept(k), at.slope(k), at.curvature(k));
      all_done = all_done && bracket.done;
    }
    if (all_done) break;
  }
  return (slope.array() <= smooth).select(flattest, lowest);
}

}  // namespace halosvm
