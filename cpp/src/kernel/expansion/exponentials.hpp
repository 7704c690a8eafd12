/// \file
/// Exponentials of moments of pairs, which keep their digits where the moments are small.
#pragma once

#include "halosvm/core/normal.hpp"

namespace halosvm::kernels {

/// exp(x) - 1 - x for |x| < \ref small: no digit is lost, and compilers find the loop around it easy.
inline double exp_without_two_terms(double x) {
  double p = 1.0 / 1307674368000.0;
  p = p * x + 1.0 / 87178291200.0;
  p = p * x + 1.0 / 6227020800.0;
  p = p * x + 1.0 / 479001600.0;
  p = p * x + 1.0 / 39916800.0;
  p = p * x + 1.0 / 3628800.0;
  p = p * x + 1.0 / 362880.0;
  p = p * x + 1.0 / 40320.0;
  p = p * x + 1.0 / 5040.0;
  p = p * x + 1.0 / 720.0;
  p = p * x + 1.0 / 120.0;
  p = p * x + 1.0 / 24.0;
  p = p * x + 1.0 / 6.0;
  p = p * x + 0.5;
  return x * x * p;
}

inline constexpr double small = 0.4;

/// exp(t - a), 0 below 1e-305.
inline double exp_of_difference(double a, double t) {
  constexpr double end = 702.0;
  const double u = a - t;
  const double inside = u < end ? (u > -end ? u : -end) : end;
  const double power = detail::exp_minus(inside, 0.0);
  return u < end ? power : 0.0;
}

}  // namespace halosvm::kernels
