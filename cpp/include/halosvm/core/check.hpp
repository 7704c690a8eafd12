/// \file
/// The one place that formats errors. Every error is a std::invalid_argument whose text names the argument, the place
/// in it and the measured value.
#pragma once

#include "halosvm/core/types.hpp"

#include <atomic>
#include <string>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Largest absolute value accepted in means, variances and factors; beyond it squares and sums overflow.
inline constexpr double largest_value = 1e150;

namespace check {

/// Throws std::invalid_argument("<argument> <what>").
[[noreturn]] void fail(const std::string& argument, const std::string& what);

/// Throws "<argument> row <row>, column <column> is <value>; <rule>"; a negative column is left out.
[[noreturn]] void fail_at(const std::string& argument, Index row, Index column, double value, const std::string& rule);

/// Throws unless \p condition holds.
void require(bool condition, const std::string& argument, const std::string& what);

/// Throws unless two sizes agree: "<argument> has <size> <unit>, <other> has <other_size>".
void same_size(const std::string& argument, Index size, const std::string& other, Index other_size,
               const std::string& unit);

/// Throws unless the value is finite and > 0.
void positive(const std::string& argument, double value);

/// Throws unless the value is finite and >= 0.
void not_negative(const std::string& argument, double value);

/// The pointer, shared or not. Throws if it is null.
template <class Pointer>
Pointer given(Pointer pointer, const std::string& argument) {
  if (pointer == nullptr) fail(argument, "must not be null");
  return pointer;
}

/// Remembers that numbers have been looked at, so that this happens once however often they are used.
class Once {
 public:
  /// Calls \p look unless it was called before and returned, or that was to be assumed.
  template <class Look>
  void operator()(const Look& look) const {
    if (done_.load(std::memory_order_relaxed)) return;
    look();
    done_.store(true, std::memory_order_relaxed);
  }
  /// Leaves the look out.
  void assume() const { done_.store(true, std::memory_order_relaxed); }

 private:
  mutable std::atomic<bool> done_{false};
};

/// The shortest text that shows a value (six significant digits, "nan", "inf").
std::string text(double value);

}  // namespace check
}  // namespace halosvm
HALOSVM_PUBLIC_END
