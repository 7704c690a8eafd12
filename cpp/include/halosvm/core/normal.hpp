/// \file
/// The normal law on its tail, accurate to a few units in the last place and free of branches and library calls, so
/// that compilers turn loops over these functions into vector code.
#pragma once

#include "halosvm/core/visibility.hpp"

#include <cstdint>
#include <cstring>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Values of the standard normal law at t >= 0.
struct NormalTail {
  double density;        ///< phi(t)
  double upper;          ///< Phi(-t)
  double hinge;          ///< h(t) = phi(t) - t Phi(-t) = E max(0, Z - t)
  double squared_hinge;  ///< (1 + t^2) Phi(-t) - t phi(t) = E max(0, Z - t)^2
};

/// Beyond this argument phi falls below 1e-305 and all tail values are returned as 0.
inline constexpr double normal_tail_end = 37.5;

inline constexpr double log_two_pi = 1.8378770664093454836;  ///< log(2 pi)

namespace detail {

inline std::uint64_t bits_of(double x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline double from_bits(std::uint64_t bits) {
  double x = 0.0;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

/// x with the lower 27 bits of its fraction cleared: products of two such numbers are exact.
inline double upper_half(double x) { return from_bits(bits_of(x) & ~std::uint64_t{0x7ffffff}); }

/// exp(-(a + b)) for 0 <= a <= 704 and |b| < 1e-3, where a is exact and b is a correction to it.
inline double exp_minus(double a, double b) {
  constexpr double log2_e = 1.4426950408889634;
  // ln 2 in two parts; the first has 33 bits, so that its product with an integer below 2^11 is exact.
  constexpr double ln2_upper = 6.93147180369123816490e-01;
  constexpr double ln2_lower = 1.90821492927058770002e-10;
  constexpr double to_integer = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const double shifted = -a * log2_e + to_integer;
  const double n = shifted - to_integer;
  const double r = ((-a - n * ln2_upper) - n * ln2_lower) - b;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const double power = from_bits((bits_of(shifted) + 1023) << 52);
  return p * power;
}

/// P, Q and t Q + P of \ref normal_tail; the Mills ratio is (t Q + P) / (Q + t (t Q + P)).
struct MillsFraction {
  double p;
  double q;
  double numerator;
};

inline MillsFraction mills_fraction(double u) {
  double p = 5.1276021136702875983e-7;
  p = p * u + 1.5484442515226519311e-5;
  p = p * u + 2.3444264801749950358e-4;
  p = p * u + 2.2961671687972015292e-3;
  p = p * u + 1.5911528059358442278e-2;
  p = p * u + 8.0725980082787532539e-2;
  p = p * u + 3.0054565692669469418e-1;
  p = p * u + 7.9765335097674748185e-1;
  p = p * u + 1.3897978635982785867;
  p = p * u + 1.2533141373155000141;
  double q = 2.5638010569167622956e-7;
  q = q * u + 7.7422212557572610547e-6;
  q = q * u + 1.1799046451722734302e-4;
  q = q * u + 1.1713102362362952106e-3;
  q = q * u + 8.3043519466744381261e-3;
  q = q * u + 4.3714318544677146867e-2;
  q = q * u + 1.7276151749120532185e-1;
  q = q * u + 5.0696819105045323996e-1;
  q = q * u + 1.0626621186115510356;
  q = q * u + 1.4513532422920744831;
  q = q * u + 1.0;

  return {p, q, u * q + p};
}

}  // namespace detail

/// Tail values at t + dt for t >= 0; \p dt carries the rounding error of t, which phi would magnify by t^2.
///
/// With the continued fraction a_k = k / (t + a_(k+1)) of the Mills ratio, everything follows from a_2 = P/Q alone by
/// sums of positive terms: with N = Q + t (t Q + P) it is h = phi Q/N, Phi(-t) = phi (t Q + P)/N and the squared tail
/// phi P/N. P and Q (degrees 9 and 10, all coefficients positive) are a minimax fit to a_2 on [0, 40] with relative
/// error 2.7e-16; their own source is the continued fraction evaluated in 80 digits.
inline NormalTail normal_tail(double t, double dt = 0.0) {
  constexpr double inverse_root_two_pi = 0.39894228040143267794;
  const bool inside = t <= normal_tail_end;
  const double u = inside ? t : normal_tail_end;

  const double upper = detail::upper_half(u);
  const double lower = u - upper;
  const double power = detail::exp_minus(0.5 * upper * upper, lower * (upper + 0.5 * lower) + u * dt);
  const double density = inside ? inverse_root_two_pi * power : 0.0;

  const auto [p, q, numerator] = detail::mills_fraction(u);
  const double inverse = 1.0 / (q + u * numerator);  // density is multiplied in last: it may be close to underflow
  return {density, density * (numerator * inverse), density * (q * inverse), density * (p * inverse)};
}

/// The Mills ratio Phi(-t) / phi(t) for t >= 0 of any size: beyond 40, too, its error is that of a_2 times 2 / t^4.
inline double mills_ratio(double t) {
  constexpr double end = 1e25;  // where P and Q would overflow before long, and the ratio is 1 / t to the last bit
  const bool inside = t <= end;
  const double u = inside ? t : end;
  const detail::MillsFraction fraction = detail::mills_fraction(u);
  return (inside ? fraction.numerator : 1.0) / (inside ? fraction.q + u * fraction.numerator : t);
}

/// phi(z), the standard normal density.
inline double normal_pdf(double z) { return normal_tail(z < 0.0 ? -z : z).density; }

/// Phi(z), the standard normal distribution function; relatively accurate on both sides.
inline double normal_cdf(double z) {
  const double upper = normal_tail(z < 0.0 ? -z : z).upper;
  return z < 0.0 ? upper : 1.0 - upper;
}

/// The t with Phi(-t) = p for 0 < p <= 1/2, by Halley's method on Phi(-t) from a rough start; t <= 37.5.
double normal_upper_quantile(double p);

/// The ratio m / s together with its rounding error: m / s = value + error to about 100 bits.
struct Ratio {
  double value;    ///< the rounded ratio
  double error;    ///< what rounding took from it
  double inverse;  ///< 1 / s
};

/// m / s for s > 0, without fused multiply-add; an infinite value has an undefined error.
inline Ratio exact_ratio(double m, double s) {
  const double inverse = 1.0 / s;
  const double z = m * inverse;
  const double z1 = detail::upper_half(z);
  const double z2 = z - z1;
  const double s1 = detail::upper_half(s);
  const double s2 = s - s1;
  const double remainder = (((m - z1 * s1) - z1 * s2) - z2 * s1) - z2 * s2;
  return {z, remainder * inverse, inverse};
}

}  // namespace halosvm
HALOSVM_PUBLIC_END
