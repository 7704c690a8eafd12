/// \file
/// The expected hinge E max(0, m + s Z), Z ~ N(0, 1): the loss of SVM-GSU (Tzelepis, Mezaris and Patras, 2018, eq. 6).
#pragma once

#include "halosvm/loss/loss.hpp"
#include "halosvm/core/normal.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// psi(m, s) = m Phi(m/s) + s phi(m/s).
struct ExpectedHinge {
  static constexpr const char* name = "expected_hinge";  ///< in the table of losses
  /// What solvers may know of it.
  static constexpr LossTraits traits = {true,     true,    true,  true, 1.0,     1.0,
                                        infinity, nullptr, false, 0.0,  nullptr, {1.0, 0.0}};

  /// m Phi(m/s) + s phi(m/s), evaluated as max(m, 0) + s h(|m|/s), which never cancels. s = 0 gives the hinge.
  static LossFirst first(double m, double s) {
    const bool spread = s >= smallest_spread;
    const double width = spread ? s : 1.0;
    const Ratio z = exact_ratio(m, width);
    const bool below = z.value < 0.0;
    const NormalTail tail = normal_tail(below ? -z.value : z.value, below ? -z.error : z.error);
    const double hinge = m < 0.0 ? 0.0 : m;
    const double step = m > 0.0 ? 1.0 : (m < 0.0 ? 0.0 : 0.5);
    const double probability = below ? tail.upper : 1.0 - tail.upper;
    return {spread ? hinge + width * tail.hinge : hinge, spread ? probability : step,
            spread ? tail.density * z.inverse : 0.0};
  }

  /// psi_mm = phi/s, psi_ms = -z phi/s, psi_ss = z^2 phi/s; all 0 at s = 0.
  static LossSecond second(double m, double s) {
    const bool spread = s >= smallest_spread;
    const Ratio z = exact_ratio(m, spread ? s : 1.0);
    const bool below = z.value < 0.0;
    const double t = below ? -z.value : z.value;
    const double mm = spread ? normal_tail(t, below ? -z.error : z.error).density * z.inverse : 0.0;
    const double ratio = t <= normal_tail_end ? z.value : 0.0;  // an infinite ratio times 0 would be NaN
    return {mm, -ratio * mm, ratio * ratio * mm};
  }
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
