/// \file
/// Gradients of an objective as values, and how far they lie apart.
#pragma once

#include "halosvm/objective.hpp"
#include "oracle/problem.hpp"

#include <algorithm>

namespace oracle {

using halosvm::Gradient;
using halosvm::Objective;

inline Gradient evaluate(const Objective& objective, const Matrix& W, const Vector& b) {
  Gradient out(W.rows(), W.cols());
  objective.value_and_gradient(W, b, out);
  return out;
}

inline Gradient times_hessian(const Objective& objective, const Point& at, const Point& direction) {
  Gradient out(at.W.rows(), at.W.cols());
  objective.hessian_vector(at.W, at.b, direction.W, direction.b, out);
  return out;
}

/// Largest difference between row k of a gradient and the oracle's.
inline double difference(const Gradient& got, Index k, const RealVector& want) {
  const RealVector row = joined(got.coef.row(k).transpose(), got.intercept(k));
  return static_cast<double>((row - want).cwiseAbs().maxCoeff());
}

inline double difference(const Gradient& a, const Gradient& b) {
  return std::max({(a.value - b.value).cwiseAbs().maxCoeff(), (a.coef - b.coef).cwiseAbs().maxCoeff(),
                   (a.intercept - b.intercept).cwiseAbs().maxCoeff()});
}

inline bool same_bits(const Gradient& a, const Gradient& b) {
  return a.value == b.value && a.coef == b.coef && a.intercept == b.intercept;
}

}  // namespace oracle
