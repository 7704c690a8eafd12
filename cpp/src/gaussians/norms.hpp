/// \file
/// Norms |p|_q of few numbers, 1 <= q <= infinity, and their duals.
#pragma once

#include "halosvm/core/types.hpp"

#include <cmath>

namespace halosvm {

/// The q of 1/p + 1/q = 1, and back.
inline double conjugate(double p) { return p == 1.0 ? infinity : std::isinf(p) ? 1.0 : p / (p - 1.0); }

/// |p|_q.
inline double norm(const ConstVectorRef& p, double q) {
  if (q == 2.0) return p.norm();
  if (q == 1.0) return p.cwiseAbs().sum();
  const double largest = p.size() > 0 ? p.cwiseAbs().maxCoeff() : 0.0;
  if (std::isinf(q) || !(largest > 0.0)) return largest;
  return largest * std::pow((p.array().abs() / largest).pow(q).sum(), 1.0 / q);
}

/// Turns p into |p|_q times the gradient of |p|_q, and returns |p|_q. Of several largest entries the first counts for q
/// = infinity (spec G.1).
inline double turn_to_slope(VectorRef p, double q) {
  const double size = norm(p, q);
  if (q == 2.0 || !(size > 0.0)) return size;
  if (q == 1.0) {
    p = size * p.cwiseSign();
  } else if (std::isinf(q)) {
    Index at = 0;
    p.cwiseAbs().maxCoeff(&at);
    const double largest = p(at);
    p.setZero();
    p(at) = largest;
  } else {
    p = (size * p.array().sign() * (p.array().abs() / size).pow(q - 1.0)).matrix();
  }
  return size;
}

}  // namespace halosvm
