/// \file
/// The hinge loss max(0, m): the plain support vector machine, blind to the spread.
#pragma once

#include "halosvm/loss/loss.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// psi(m, s) = max(0, m).
struct Hinge {
  static constexpr const char* name = "hinge";  ///< in the table of losses
  /// What solvers may know of it.
  static constexpr LossTraits traits = {false, true, true,    true,      1.0, 1.0, infinity, "expected_hinge",
                                        false, 0.0,  nullptr, {1.0, 0.0}};

  /// max(0, m); the slope at the kink m = 0 is 1/2, the limit of the expected hinge for s -> 0.
  static LossFirst first(double m, double /*s*/) {
    const double slope = m > 0.0 ? 1.0 : 0.0;
    return {m < 0.0 ? 0.0 : m, m == 0.0 ? 0.5 : slope, 0.0};
  }

  /// 0 but at the kink.
  static LossSecond second(double /*m*/, double /*s*/) { return {0.0, 0.0, 0.0}; }
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
