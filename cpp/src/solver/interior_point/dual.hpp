/// \file
/// The dual variable of one example in the interior-point method, and its steps. Private to newton_system.cpp.
#pragma once

#include "halosvm/core/normal.hpp"

#include <algorithm>

namespace halosvm {

/// What theta r and (1 - theta) t are to become.
struct Target {
  double low;
  double high;
};

/// What the dual variable of a spread may be at most, kappa(theta), and q = -kappa'(theta).
struct DualLaw {
  double q;
  double density;  ///< kappa
  bool straight;   ///< kappa'' = 0; else it is -1 / kappa

  /// -kappa'' s
  double stiffness(double s) const { return straight ? 0.0 : s / std::max(density, 1e-300); }
};

/// The longest step not above \p length that keeps value + step * change >= 0.
inline double longest(double length, double value, double change) {
  return change < 0.0 ? std::min(length, -value / change) : length;
}

/// The dual variable of one example and the multipliers of its bounds.
struct Dual {
  double theta;  ///< 0 < theta < 1
  double rest;   ///< 1 - theta, kept apart so that it stays accurate near 0
  double low;    ///< multiplier r of theta >= 0
  double high;   ///< multiplier t of theta <= 1

  /// \param quantile kappa = phi(q) with q = Phi^-1(theta), of the expected hinge; otherwise kappa = theta, of the
  /// worst case.
  DualLaw law(bool quantile) const {
    if (!quantile) return {-1.0, theta, true};
    const bool lower = theta < 0.5;
    const double t = normal_upper_quantile(std::max(lower ? theta : rest, 1e-300));
    return {lower ? -t : t, normal_tail(t).density, false};
  }

  /// Steps of the two multipliers that go with a step of theta.
  double low_step(const Target& target, double dtheta) const {
    return (target.low - theta * low - low * dtheta) / theta;
  }
  double high_step(const Target& target, double dtheta) const {
    return (target.high - rest * high + high * dtheta) / rest;
  }

  /// The longest step not above \p length that keeps all four >= 0.
  double longest_step(const Target& target, double dtheta, double length) const {
    length = longest(length, theta, dtheta);
    length = longest(length, rest, -dtheta);
    length = longest(length, low, low_step(target, dtheta));
    return longest(length, high, high_step(target, dtheta));
  }

  Dual moved(const Target& target, double dtheta, double length) const {
    return {theta + length * dtheta, rest - length * dtheta, low + length * low_step(target, dtheta),
            high + length * high_step(target, dtheta)};
  }

  /// theta r + (1 - theta) t.
  double complementarity() const { return theta * low + rest * high; }
};

}  // namespace halosvm
