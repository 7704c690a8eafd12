#include "halosvm/loss/loss.hpp"
#include "oracle/errors.hpp"

#include <doctest/doctest.h>

#include <limits>

using oracle::refused;

TEST_CASE("losses of no name, and floors that cannot be, are refused") {
  CHECK(refused([] { halosvm::make_loss(""); }) == "loss");
  CHECK(refused([] { halosvm::smoothed_loss(nullptr, 0.1); }) == "loss");
  for (const double bad : {-1.0, halosvm::infinity, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(refused([&] { halosvm::smoothed_loss(halosvm::make_loss("expected_hinge"), bad); }) == "floor");
  }
}
