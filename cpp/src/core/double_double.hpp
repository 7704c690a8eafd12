/// \file
/// Sums of products with twice the digits of a double: products and sums keep what rounding takes from them
/// (T. J. Dekker, A floating-point technique for extending the available precision, 1971).
#pragma once

#include <cmath>

namespace halosvm {

/// A number as the sum of two doubles, the second at most a rounding error of the first.
class DoubleDouble {
 public:
  DoubleDouble() = default;
  explicit DoubleDouble(double value) : high_(value) {}

  /// In a file of its own, so that no compiler fuses it with the product that is added.
  void add(double value);

  void add_product(double a, double b) {
    const double product = a * b;
    add(product);
    low_ += rounded_off(a, b, product);
  }

  void add_product(double a, const DoubleDouble& b) {
    add_product(a, b.high_);
    low_ += a * b.low_;
  }

  double value() const { return high_ + low_; }

 private:
  /// a b - product, exactly. Where there is no fused multiplication, compilers cannot spoil Dekker's.
#ifdef FP_FAST_FMA
  static double rounded_off(double a, double b, double product) { return std::fma(a, b, -product); }
#else
  static double rounded_off(double a, double b, double product) {
    const double a_high = upper_half(a);
    const double b_high = upper_half(b);
    const double a_low = a - a_high;
    const double b_low = b - b_high;
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
  }
  static double upper_half(double a) {
    const double scaled = 134217729.0 * a;  // 2^27 + 1
    return scaled - (scaled - a);
  }
#endif

  double high_ = 0.0;
  double low_ = 0.0;
};

}  // namespace halosvm
