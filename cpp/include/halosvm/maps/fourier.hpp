/// \file
/// Random Fourier features of Gaussians (spec K.9) and of bounded inputs (spec G.5): Gaussians enter, the moments of
/// their features leave, or how far features can move. Inner products of features estimate the Gaussian kernel.
#pragma once

#include "halosvm/maps/features.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// The last frequencies have a phase each, as many as there are phases, and the K others have none: the features are
/// sqrt(2/D) (cos w_1'x, ..., cos w_K'x, cos(w_(K+1)'x + phase_1), ..., sin w_1'x, ..., sin w_K'x), D = J + K of them.
/// With random phases each cosine alone has in products half the expectation of a pair, which makes it
/// 2/D (K + (J - K) / 2) = 1 times the kernel, whatever K is. Without phases their norm is 1.
struct FourierMap {
  Matrix frequencies;  ///< w_j, J x n_features
  Vector phases;       ///< of the last frequencies, at most J

  /// Number of frequencies.
  Index n_frequencies() const { return frequencies.rows(); }
  /// Number of frequencies that have a cosine and a sine.
  Index n_pairs() const { return n_frequencies() - phases.size(); }
  /// Number of features.
  Index n_components() const { return n_frequencies() + n_pairs(); }
};

/// Expectations of the features of each Gaussian, and as wanted their exact variances, their exact covariances, or the
/// factor of their linear part E(Jacobian) R with the exact variances of the rest. With u = w'mu + phase and A = w'S w,
///
///     E cos = cos(u) e^(-A/2),    Var cos = 1/2 (1 - e^-A) (1 - e^-A + 2 e^-A sin^2 u),
///
/// sums of positive terms, which keep their digits however small S is. Rows are worked on in blocks that stay in the
/// cache; the result does not depend on the number of threads.
/// \throws std::invalid_argument unless the frequencies have the features of \p X, and there is one.
void fourier_features(const FourierMap& map, const Gaussians& X, const FeatureTarget& out, const Execution& execution);

/// out(i) >= |phi(x_i + dx) - phi(x_i)|_2 for all dx in the ball of row i: the least of the bound that holds for each
/// frequency by itself and the one that knows that no dx moves all of them as far, by the spectral norm of W R.
/// \param printed the looser bound of Couellan and Jan (2017).
void fourier_bound(const FourierMap& map, const Gaussians& X, const InputBall& ball, bool printed, VectorRef out,
                   const Execution& execution);

}  // namespace halosvm
HALOSVM_PUBLIC_END
