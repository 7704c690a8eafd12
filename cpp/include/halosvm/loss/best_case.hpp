/// \file
/// The hinge of the best point within a bounded error, max(0, m - s): the loss of TSVC (Bi and Zhang, 2004; spec I.1
/// (7)).
#pragma once

#include "halosvm/loss/hinge.hpp"
#include "halosvm/loss/loss.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// psi(m, s) = max(0, m - s), which is not convex.
struct BestCase {
  static constexpr const char* name = "best_case";  ///< in the table of losses
  /// What solvers may know of it.
  static constexpr LossTraits traits = {true, true, true, false, 1.0, 1.0, infinity, nullptr, true, -1.0, Hinge::name};

  /// The hinge of m - s, whose slope at the kink is 1/2.
  static LossFirst first(double m, double s) {
    const bool spread = s >= smallest_spread;
    const LossFirst at = Hinge::first(spread ? m - s : m, 0.0);
    return {at.value, at.slope_m, spread ? -at.slope_m / s : 0.0};
  }

  /// 0 but at the kink.
  static LossSecond second(double /*m*/, double /*s*/) { return {0.0, 0.0, 0.0}; }
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
