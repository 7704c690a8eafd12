/// \file
/// Logarithm and exponential without branches and library calls, and eight pairs side by side.
#pragma once

#include "halosvm/core/normal.hpp"
#include "halosvm/core/types.hpp"

#include <cstdint>

namespace halosvm::kernels {

inline constexpr Index lanes = 8;

/// One number for each of eight pairs, in as many registers as the processor needs for them.
using Pack = Eigen::Array<double, lanes, 1>;

inline Pack load(const double* from) { return Eigen::Map<const Pack>(from); }

inline Index padded(Index count) { return (count + lanes - 1) / lanes * lanes; }

/// log x for a normal x > 0, within 2 units in the last place, from log((1 + s) / (1 - s)) = 2 (s + s^3/3 + s^5/5 ...).
inline double log_of(double x) {
  constexpr double root_two = 1.4142135623730951;
  constexpr double ln2 = 0.69314718055994531;
  constexpr double to_integer = 0x1.8p52;
  const std::uint64_t bits = detail::bits_of(x);
  const double fraction = detail::from_bits((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
  const double exponent = detail::from_bits(detail::bits_of(to_integer) + (bits >> 52) - 1023) - to_integer;
  const bool large = fraction > root_two;
  const double f = (large ? 0.5 * fraction : fraction) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 2.0 / 23.0;
  p = p * z + 2.0 / 21.0;
  p = p * z + 2.0 / 19.0;
  p = p * z + 2.0 / 17.0;
  p = p * z + 2.0 / 15.0;
  p = p * z + 2.0 / 13.0;
  p = p * z + 2.0 / 11.0;
  p = p * z + 2.0 / 9.0;
  p = p * z + 2.0 / 7.0;
  p = p * z + 2.0 / 5.0;
  p = p * z + 2.0 / 3.0;
  return (large ? exponent + 1.0 : exponent) * ln2 + (2.0 * s + s * z * p);
}

/// log(1 + v) for v >= 0, relatively accurate for small v too.
inline double log_of_one_plus(double v) {
  const double a = 1.0 + v;
  return log_of(a) + (v - (a - 1.0)) / a;
}

/// exp(-a) for a >= 0; what is below 1e-305 becomes 0, and rounding errors below 0 count as 0.
inline double exp_of_minus(double a) {
  constexpr double end = 702.0;
  const double inside = a > 0.0 ? (a < end ? a : end) : 0.0;
  const double power = detail::exp_minus(inside, 0.0);
  return a < end ? power : 0.0;
}

/// exp(-a) - 1 for a >= 0, relatively accurate for small a too; rounding errors below 0 count as 0. With the nearest
/// integer n to -a / ln 2 and r = -a - n ln 2 it is 2^n (e^r - 1) + (2^n - 1), where nothing cancels.
inline double exp_of_minus_less_one(double a) {
  constexpr double end = 702.0;
  constexpr double log2_e = 1.4426950408889634;
  constexpr double ln2_upper = 6.93147180369123816490e-01;
  constexpr double ln2_lower = 1.90821492927058770002e-10;
  constexpr double to_integer = 0x1.8p52;
  const double inside = a > 0.0 ? (a < end ? a : end) : 0.0;
  const double shifted = -inside * log2_e + to_integer;
  const double n = shifted - to_integer;
  const double r = (-inside - n * ln2_upper) - n * ln2_lower;
  double p = 1.0 / 87178291200.0;
  p = p * r + 1.0 / 6227020800.0;
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
  const double power = detail::from_bits((detail::bits_of(shifted) + 1023) << 52);
  return power * (r + r * (r * p)) + (power - 1.0);
}

/// The logarithm of a product of positive numbers, of which only the last is taken: exponents are split off as the
/// product grows or shrinks.
class LogProduct {
 public:
  /// Follow with \ref normalise before the product leaves 1e-300 ... 1e300.
  void multiply(const Pack& factor) { fraction_ *= factor; }

  void normalise() {
    constexpr double to_integer = 0x1.8p52;
    for (Index l = 0; l < lanes; ++l) {
      const std::uint64_t bits = detail::bits_of(fraction_[l]);
      exponent_[l] += detail::from_bits(detail::bits_of(to_integer) + (bits >> 52) - 1023) - to_integer;
      fraction_[l] = detail::from_bits((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
    }
  }

  Pack log() const {
    constexpr double ln2 = 0.69314718055994531;
    Pack out;
    for (Index l = 0; l < lanes; ++l) out[l] = exponent_[l] * ln2 + log_of(fraction_[l]);
    return out;
  }

 private:
  Pack fraction_ = Pack::Ones();
  Pack exponent_ = Pack::Zero();
};

}  // namespace halosvm::kernels
