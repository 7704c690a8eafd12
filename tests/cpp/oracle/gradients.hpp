/// \file
/// Gradients of an objective as values, and how far they lie apart.
#pragma once

#include "halosvm/objective/local_objective.hpp"
#include "oracle/problem.hpp"

#include <algorithm>

namespace oracle {

using halosvm::Evaluation;
using halosvm::LocalObjective;

inline Evaluation evaluate(const LocalObjective& objective, const Matrix& W, const Vector& b) {
  Evaluation out(W.rows(), W.cols());
  objective.value_and_gradient(W, b, out);
  return out;
}

inline Evaluation times_hessian(const LocalObjective& objective, const Point& at, const Point& direction) {
  Evaluation out(at.W.rows(), at.W.cols());
  objective.hessian_vector(at.W, at.b, direction.W, direction.b, out);
  return out;
}

/// Largest difference between row k of a gradient and the oracle's.
inline double difference(const Evaluation& got, Index k, const RealVector& want) {
  const RealVector row = joined(got.coef.row(k).transpose(), got.intercept(k));
  return static_cast<double>((row - want).cwiseAbs().maxCoeff());
}

inline double difference(const Evaluation& a, const Evaluation& b) {
  return std::max({(a.value - b.value).cwiseAbs().maxCoeff(), (a.coef - b.coef).cwiseAbs().maxCoeff(),
                   (a.intercept - b.intercept).cwiseAbs().maxCoeff()});
}

inline bool same_bits(const Evaluation& a, const Evaluation& b) {
  return a.value == b.value && a.coef == b.coef && a.intercept == b.intercept;
}

}  // namespace oracle
