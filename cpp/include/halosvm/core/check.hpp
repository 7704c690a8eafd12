/// \file
/// The one place that formats errors. Every error is a std::invalid_argument whose text names the argument, the place
/// in it and the measured value.
#pragma once

#include "halosvm/core/types.hpp"

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

/// The shortest text that shows a value (six significant digits, "nan", "inf").
std::string text(double value);

}  // namespace check
}  // namespace halosvm
HALOSVM_PUBLIC_END
