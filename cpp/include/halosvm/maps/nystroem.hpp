/// \file
/// Nystroem features of Gaussians (spec K.10): combinations of the sections of a Gaussian kernel at landmarks.
/// Gaussians enter, the moments of their features leave.
#pragma once

#include "halosvm/maps/features.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// phi(x) = projection h(x) with h_j(x) = E k(x, z) over z ~ Z_j, k(x, z) = exp(-sum_k gamma_k (x_k - z_k)^2).
struct NystroemMap {
  Vector gamma;       ///< positive: one for all features, or one for each
  Gaussians Z;        ///< landmarks; those without covariances are points
  Matrix projection;  ///< D x Z.n_samples

  /// Number of features.
  Index n_components() const { return projection.rows(); }
};

/// Expectations of the features of each Gaussian, and as wanted their exact variances, their exact covariances, or the
/// factor of their linear part E(Jacobian) R, without the rest. For m landmarks a Gaussian costs m^2 pairs of sections
/// (those of expansion_variance()) and D m^2 for variances and covariances, m d D for factors. The result does not
/// depend on the number of threads.
/// \throws std::invalid_argument for sizes that do not agree, gamma out of range, and variances beside factors.
void nystroem_features(const NystroemMap& map, const Gaussians& X, const FeatureTarget& out,
                       const Execution& execution);

}  // namespace halosvm
HALOSVM_PUBLIC_END
