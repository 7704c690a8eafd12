/// \file
/// Sums of products with twice the digits of a double: products and sums keep what rounding takes from them
/// (T. J. Dekker, A floating-point technique for extending the available precision, 1971).
#pragma once

namespace halosvm {

/// A number as the sum of two doubles, the second at most a rounding error of the first.
class DoubleDouble {
 public:
  DoubleDouble() = default;
  explicit DoubleDouble(double value) : high_(value) {}

  void add(double value) {
    const double sum = high_ + value;
    const double part = sum - high_;
    low_ += (high_ - (sum - part)) + (value - part);
    high_ = sum;
  }

  void add_product(double a, double b) {
    const double product = a * b;
    const double a_high = upper_half(a);
    const double b_high = upper_half(b);
    const double a_low = a - a_high;
    const double b_low = b - b_high;
    add(product);
    low_ += ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
  }

  void add_product(double a, const DoubleDouble& b) {
    add_product(a, b.high_);
    low_ += a * b.low_;
  }

  double value() const { return high_ + low_; }

 private:
  static double upper_half(double a) {
    const double scaled = 134217729.0 * a;  // 2^27 + 1
    return scaled - (scaled - a);
  }

  double high_ = 0.0;
  double low_ = 0.0;
};

}  // namespace halosvm
