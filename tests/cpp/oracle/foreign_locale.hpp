/// \file
/// A locale whose numbers look otherwise, for a scope; no locale of the system is needed.
#pragma once

#include <locale>
#include <string>

namespace oracle {

/// Digits in groups of one, and a comma where others have a point.
struct Foreign : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\1"; }
};

struct InForeignLocale {
  InForeignLocale() : before(std::locale::global(std::locale(std::locale::classic(), new Foreign))) {}
  ~InForeignLocale() { std::locale::global(before); }
  InForeignLocale(const InForeignLocale&) = delete;
  InForeignLocale& operator=(const InForeignLocale&) = delete;
  std::locale before;
};

}  // namespace oracle
