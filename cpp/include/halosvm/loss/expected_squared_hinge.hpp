/// \file
/// The expected squared hinge E max(0, m + s Z)^2, Z ~ N(0, 1): smooth everywhere, also at s = 0 (spec K.2).
#pragma once

#include "halosvm/loss/loss.hpp"
#include "halosvm/core/normal.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// psi(m, s) = (m^2 + s^2) Phi(m/s) + m s phi(m/s).
struct ExpectedSquaredHinge {
  static constexpr const char* name = "expected_squared_hinge";  ///< in the table of losses
  /// What solvers may know of it.
  static constexpr LossTraits traits = {true, false,   false, false, 1.0,     infinity,
                                        2.0,  nullptr, false, 0.0,   nullptr, {infinity, 0.5}};

  /// (m^2 + s^2) Phi(m/s) + m s phi(m/s): for m > 0 it is m^2 + s^2 less the other side, which cancels nothing.
  static LossFirst first(double m, double s) {
    const bool spread = s >= smallest_spread;
    const double width = spread ? s : 0.0;
    const Ratio z = exact_ratio(m, spread ? s : 1.0);
    const bool below = z.value < 0.0;
    const NormalTail tail = normal_tail(below ? -z.value : z.value, below ? -z.error : z.error);
    const double hinge = m < 0.0 ? 0.0 : m;
    const double step = m > 0.0 ? 1.0 : (m < 0.0 ? 0.0 : 0.5);
    const double probability = below ? tail.upper : 1.0 - tail.upper;
    const double other = width * width * tail.squared_hinge;
    return {below ? other : hinge * hinge + (width * width - other), 2.0 * (hinge + width * tail.hinge),
            2.0 * (spread ? probability : step)};
  }

  /// psi_mm = 2 Phi, psi_ms = 2 phi, psi_ss = 2 (Phi - z phi).
  static LossSecond second(double m, double s) {
    const bool spread = s >= smallest_spread;
    const Ratio z = exact_ratio(m, spread ? s : 1.0);
    const bool below = z.value < 0.0;
    const double t = below ? -z.value : z.value;
    const NormalTail tail = normal_tail(t, below ? -z.error : z.error);
    const double step = m > 0.0 ? 1.0 : (m < 0.0 ? 0.0 : 0.5);
    const double probability = spread ? (below ? tail.upper : 1.0 - tail.upper) : step;
    const double density = spread ? tail.density : 0.0;
    const double ratio = t <= normal_tail_end ? z.value : 0.0;  // an infinite ratio times 0 would be NaN
    return {2.0 * probability, 2.0 * density, 2.0 * (probability - ratio * density)};
  }
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
