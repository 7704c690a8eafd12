#include "halosvm/core/check.hpp"
#include "oracle/errors.hpp"
#include "oracle/foreign_locale.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace check = halosvm::check;
using oracle::error_of;

TEST_CASE("text of a number has at most six significant digits and names what is not finite") {
  CHECK(check::text(0.0) == "0");
  CHECK(check::text(-0.5) == "-0.5");
  CHECK(check::text(1.23456789) == "1.23457");
  CHECK(check::text(1e200) == "1e+200");
  CHECK(check::text(std::numeric_limits<double>::quiet_NaN()) == "nan");
  CHECK(check::text(-std::numeric_limits<double>::infinity()) == "-inf");
}

TEST_CASE("text of a number is the same in every locale") {
  const oracle::InForeignLocale foreign;
  CHECK(check::text(1234.5) == "1234.5");
}

TEST_CASE("a failure names the argument first") {
  CHECK(error_of([] { check::fail("X_std", "is odd"); }) == "X_std is odd");
}

TEST_CASE("a failure at a place names row, column, value and rule") {
  CHECK(error_of([] { check::fail_at("X_std", 17, 2, -0.5, "it must be >= 0"); }) ==
        "X_std row 17, column 2 is -0.5; it must be >= 0");
  CHECK(error_of([] { check::fail_at("weights", 3, -1, -2.0, "it must be >= 0"); }) ==
        "weights row 3 is -2; it must be >= 0");
}

TEST_CASE("require fails exactly when its condition is false") {
  CHECK(error_of([] { check::require(true, "lam", "must be positive"); }).empty());
  CHECK(error_of([] { check::require(false, "lam", "must be positive"); }) == "lam must be positive");
}

TEST_CASE("sizes that differ are both named, equal sizes pass") {
  CHECK(error_of([] { check::same_size("X_std", 4, "X", 4, "columns"); }).empty());
  CHECK(error_of([] { check::same_size("X_std", 3, "X", 4, "columns"); }) == "X_std has 3 columns, X has 4");
}

TEST_CASE("positive rejects zero, negative, NaN and infinite values and names them") {
  CHECK(error_of([] { check::positive("C", 1e-300); }).empty());
  CHECK(error_of([] { check::positive("C", 0.0); }) == "C is 0; it must be positive and finite");
  CHECK(error_of([] { check::positive("C", -1.5); }) == "C is -1.5; it must be positive and finite");
  CHECK(error_of([] { check::positive("C", std::numeric_limits<double>::quiet_NaN()); }) ==
        "C is nan; it must be positive and finite");
  CHECK(error_of([] { check::positive("C", std::numeric_limits<double>::infinity()); }) ==
        "C is inf; it must be positive and finite");
}
