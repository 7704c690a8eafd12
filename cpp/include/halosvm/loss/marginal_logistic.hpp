/// \file
/// The marginal logistic loss -log E sigma(-(m + s Z)), Z ~ N(0, 1), for m = -y f: minus the log likelihood of a label
/// whose true input is integrated out (Bi and Zhang, 2004, eq. 1; spec I.1, K.5).
#pragma once

#include "halosvm/loss/loss.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// psi(m, s) = -log E 1 / (1 + exp(m + s Z)). It is convex in m, but a spread speaks for the label where the mean
/// speaks against it: psi_s / s = psi_mm - psi_m^2.
struct MarginalLogistic {
  static constexpr const char* name = "marginal_logistic";  ///< in the table of losses
  /// What solvers may know of it; by Jensen's inequality E log(1 + exp(m + s Z)) is nowhere below.
  static constexpr LossTraits traits = {
      true, false, false, false, 0.0, 1.0, 0.25, nullptr, false, 0.0, "expected_logistic"};

  /// Value and slopes, to 1e-13 of their size; log(1 + exp(m)) at s = 0. Defined in marginal_logistic.cpp.
  static LossFirst first(double m, double s);
  /// Second derivatives.
  static LossSecond second(double m, double s);
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
