/// \file
/// The normal law's tail by quadrature in extended precision. All integrands are positive, so nothing cancels.
#pragma once

#include "oracle/accuracy.hpp"

namespace oracle {

struct Tail {
  real density = 0;
  real upper = 0;
  real hinge = 0;
  real squared_hinge = 0;
};

inline real normal_density(real t) { return std::exp(-t * t / 2) / std::sqrt(8 * std::atan(real{1})); }

/// E (Z - t)_+^k = phi(t) int_0^inf u^k exp(-t u - u^2/2) du for k = 0, 1, 2 and t >= 0, by the trapezoidal rule after
/// u = exp(x - exp(-x)), which converges doubly exponentially.
inline Tail tail_by_quadrature(real t) {
  constexpr int n = 240;
  constexpr real step = real{1} / 24;
  Tail sum;
  for (int i = -n; i <= n; ++i) {
    const real x = step * i;
    const real shrink = std::exp(-x);
    const real u = std::exp(x - shrink);
    const real weight = step * u * (1 + shrink) * std::exp(-t * u - u * u / 2);
    sum.upper += weight;
    sum.hinge += weight * u;
    sum.squared_hinge += weight * u * u;
  }
  sum.density = normal_density(t);
  sum.upper *= sum.density;
  sum.hinge *= sum.density;
  sum.squared_hinge *= sum.density;
  return sum;
}

/// Phi(z), relatively accurate on both sides.
inline real cdf_by_quadrature(real z) {
  const real upper = tail_by_quadrature(std::abs(z)).upper;
  return z < 0 ? upper : 1 - upper;
}

/// The expected hinge and its derivatives at m + s Z, s > 0, from the tail alone.
struct ExpectedHinge {
  real value, slope_m, slope_s2, mm, ms, ss;
};

inline ExpectedHinge expected_hinge_by_quadrature(real m, real s) {
  const real z = m / s;
  const Tail tail = tail_by_quadrature(std::abs(z));
  const real mm = tail.density / s;
  return {(m > 0 ? m : 0) + s * tail.hinge, z < 0 ? tail.upper : 1 - tail.upper, mm, mm, -z * mm, z * z * mm};
}

}  // namespace oracle
