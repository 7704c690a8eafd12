/// \file
/// Sine and cosine without branches and library calls, so that compilers turn loops over them into vector code.
#pragma once

#include "halosvm/core/normal.hpp"

#include <cstdint>

namespace halosvm::maps {

struct SineCosine {
  double sine;
  double cosine;
};

/// Largest |x| that \ref sine_cosine takes.
inline constexpr double largest_angle = 0x1p20;

/// sin x and cos x within 2^-52 for |x| <= \ref largest_angle. With n the integer nearest to x / (pi/2),
/// r = x - n pi/2 is off by less than 2^-54 + 2^-67: the first part of pi/2 has 33 bits, so that its product with n is
/// exact, and the second is what is left, within 2^-86. On |r| < pi/4 + 2^-30 the Taylor series end within their next
/// terms, r^19 / 19! < 2^-63 and r^18 / 18! < 2^-58.
inline SineCosine sine_cosine(double x) {
  constexpr double two_over_pi = 0.63661977236758134308;
  constexpr double half_pi_upper = 1.57079632673412561417e+00;
  constexpr double half_pi_lower = 6.07710050650619224932e-11;
  constexpr double to_integer = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const double shifted = x * two_over_pi + to_integer;
  const double n = shifted - to_integer;
  const double r = (x - n * half_pi_upper) - n * half_pi_lower;
  const double z = r * r;

  double s = 1.0 / 355687428096000.0;
  s = s * z - 1.0 / 1307674368000.0;
  s = s * z + 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  s = r + r * (z * s);

  double c = 1.0 / 20922789888000.0;
  c = c * z - 1.0 / 87178291200.0;
  c = c * z + 1.0 / 479001600.0;
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  c = 1.0 + z * (z * c - 0.5);

  const std::uint64_t quadrant = detail::bits_of(shifted);
  const std::uint64_t odd = std::uint64_t{0} - (quadrant & 1U);
  const std::uint64_t sine = detail::bits_of(s);
  const std::uint64_t cosine = detail::bits_of(c);
  const std::uint64_t sine_sign = (quadrant & 2U) << 62U;
  const std::uint64_t cosine_sign = ((quadrant + 1U) & 2U) << 62U;
  return {detail::from_bits(((sine & ~odd) | (cosine & odd)) ^ sine_sign),
          detail::from_bits(((cosine & ~odd) | (sine & odd)) ^ cosine_sign)};
}

}  // namespace halosvm::maps
