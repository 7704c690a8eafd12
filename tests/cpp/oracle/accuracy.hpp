/// \file
/// How far numbers lie from an oracle's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

namespace oracle {

using real = long double;

/// True where long double has more digits than double: the oracles below are then exact for our purposes.
inline constexpr bool extended = std::numeric_limits<real>::digits > std::numeric_limits<double>::digits;

/// |got - want| / |want|, infinite for NaN. Subnormal numbers have fewer digits: they count as the smallest normal one.
inline double relative_error(real got, real want) {
  if (got == want) return 0.0;
  const real scale = std::max<real>(std::abs(want), std::numeric_limits<double>::min());
  const auto error = static_cast<double>(std::abs(got - want) / scale);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

/// The largest relative error met, and what the numbers were.
class Worst {
 public:
  template <class... Arguments>
  void add(real got, real want, Arguments... arguments) {
    const double error = relative_error(got, want);
    if (error <= error_) return;
    error_ = error;
    where_ = "got " + text(got) + ", want " + text(want) + ", at";
    ((where_ += " " + text(arguments)), ...);
  }
  double error() const { return error_; }
  const std::string& where() const { return where_; }

 private:
  template <class T>
  static std::string text(T x) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.17Lg", static_cast<real>(x));
    return buffer;
  }

  double error_ = 0.0;
  std::string where_;
};

}  // namespace oracle
