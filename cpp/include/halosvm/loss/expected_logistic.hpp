/// \file
/// The expected logistic loss E log(1 + exp(m + s Z)), Z ~ N(0, 1), for m = -y f (spec K.5).
///
/// log(1 + exp(u)) is the expected hinge of u plus logistic noise, and the logistic law is nearly a mixture of three
/// normal laws: so the loss is a mixture of three expected hinges of wider spreads, off by at most 4e-5.
#pragma once

#include "halosvm/core/logistic.hpp"
#include "halosvm/loss/loss.hpp"
#include "halosvm/loss/expected_hinge.hpp"

#include <cmath>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// psi(m, s) = sum_k shares_k L(m, sqrt(s^2 + variances_k)) with the expected hinge L.
struct ExpectedLogistic {
  static constexpr const char* name = "expected_logistic";  ///< in the table of losses
  /// What solvers may know of it.
  static constexpr LossTraits traits = {true, false, false, false, 0.0, 1.0, 0.25, nullptr};

  /// Value and slopes, a sum of those of expected hinges.
  static LossFirst first(double m, double s) {
    LossFirst sum{0.0, 0.0, 0.0};
    for (int k = 0; k < 3; ++k) {
      const LossFirst part = ExpectedHinge::first(m, std::sqrt(s * s + LogisticMixture::variances[k]));
      sum.value += LogisticMixture::shares[k] * part.value;
      sum.slope_m += LogisticMixture::shares[k] * part.slope_m;
      sum.slope_s2 += LogisticMixture::shares[k] * part.slope_s2;
    }
    return sum;
  }

  /// With v_k the variances of the mixture and s_k^2 = s^2 + v_k: ds_k/ds = s / s_k, d^2 s_k/ds^2 = v_k / s_k^3.
  static LossSecond second(double m, double s) {
    LossSecond sum{0.0, 0.0, 0.0};
    for (int k = 0; k < 3; ++k) {
      const double width = std::sqrt(s * s + LogisticMixture::variances[k]);
      const double share = s / width;
      const LossSecond part = ExpectedHinge::second(m, width);
      sum.mm += LogisticMixture::shares[k] * part.mm;
      sum.ms += LogisticMixture::shares[k] * part.ms * share;
      sum.ss += LogisticMixture::shares[k] *
                (part.ss * share * share + part.mm * (LogisticMixture::variances[k] / (width * width)));
    }
    return sum;
  }
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
