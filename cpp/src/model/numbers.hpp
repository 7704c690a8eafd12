/// \file
/// Numbers as text and back, to the last bit, in the notation of every locale's C.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

namespace halosvm {

// Some standard libraries have these for integers alone.
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L

/// Reads digits that are known to be a number; false if it is out of range.
inline bool read_number(std::string_view digits, double& value) {
  return std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc();
}

/// The shortest digits that read as the same number.
inline std::string shortest_digits(double value) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

#else

inline bool read_number(std::string_view digits, double& value) {
  std::istringstream in{std::string(digits)};
  in.imbue(std::locale::classic());
  in >> value;  // fails for subnormal numbers too, which it reads
  return std::isfinite(value) && (!in.fail() || (value != 0.0 && std::abs(value) < std::numeric_limits<double>::min()));
}

inline std::string shortest_digits(double value) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out.precision(std::numeric_limits<double>::max_digits10);
  out << value;
  return out.str();
}

#endif

/// Digits with a point or an exponent, by which readers know a number that need not be whole.
inline std::string number_text(double value) {
  std::string digits = shortest_digits(value);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

}  // namespace halosvm
