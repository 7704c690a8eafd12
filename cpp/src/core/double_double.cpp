// The sum of a double-double and a double.

#include "core/double_double.hpp"

namespace halosvm {

void DoubleDouble::add(double value) {
  const double sum = high_ + value;
  const double part = sum - high_;
  low_ += (high_ - (sum - part)) + (value - part);
  high_ = sum;
}

}  // namespace halosvm
