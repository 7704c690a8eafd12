// Texts of errors: an argument, a place in it and a value come in, std::invalid_argument goes out.

#include "halosvm/core/check.hpp"

#include <cmath>
#include <locale>
#include <sstream>
#include <stdexcept>

namespace halosvm::check {

std::string text(double value) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << value;
  return out.str();
}

void fail(const std::string& argument, const std::string& what) { throw std::invalid_argument(argument + " " + what); }

void fail_at(const std::string& argument, Index row, Index column, double value, const std::string& rule) {
  std::string place = "row " + std::to_string(row);
  if (column >= 0) place += ", column " + std::to_string(column);
  fail(argument, place + " is " + text(value) + "; " + rule);
}

void require(bool condition, const std::string& argument, const std::string& what) {
  if (!condition) fail(argument, what);
}

void same_size(const std::string& argument, Index size, const std::string& other, Index other_size,
               const std::string& unit) {
  if (size == other_size) return;
  fail(argument, "has " + std::to_string(size) + " " + unit + ", " + other + " has " + std::to_string(other_size));
}

void positive(const std::string& argument, double value) {
  if (!(value > 0.0) || !std::isfinite(value)) fail(argument, "is " + text(value) + "; it must be positive and finite");
}

void not_negative(const std::string& argument, double value) {
  if (!(value >= 0.0) || !std::isfinite(value)) fail(argument, "is " + text(value) + "; it must be >= 0 and finite");
}

}  // namespace halosvm::check
