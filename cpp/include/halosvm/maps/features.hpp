/// \file
/// What maps into features of a kernel have in common: where their results go, and the balls of bounded inputs.
#pragma once

#include "halosvm/gaussians/gaussians.hpp"

#include <algorithm>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Memory of the caller that numbers are written to, of one of two types, or none.
class NumberTarget {
 public:
  NumberTarget() = default;
  /// Numbers go to float64 memory.
  NumberTarget(double* to) : float64_(to) {}  // NOLINT(*-explicit-constructor): a target is where it points to
  /// Numbers go to float32 memory.
  NumberTarget(float* to) : float32_(to) {}  // NOLINT(*-explicit-constructor)

  /// Whether there is memory to write to.
  bool wanted() const { return float64_ != nullptr || float32_ != nullptr; }
  /// Writes \p count numbers from position \p offset on.
  void write(Index offset, const double* from, Index count) const {
    if (float64_ != nullptr) std::copy(from, from + count, float64_ + offset);
    for (Index k = 0; float32_ != nullptr && k < count; ++k) float32_[offset + k] = static_cast<float>(from[k]);
  }

 private:
  double* float64_ = nullptr;
  float* float32_ = nullptr;
};

/// Where the features of n Gaussians go, D of each, row-major; what is not wanted is left out. Without factors the
/// variances are those of the features, exact; with factors they are what the factors leave of them.
struct FeatureTarget {
  NumberTarget means;      ///< n x D, exact
  NumberTarget variances;  ///< n x D
  NumberTarget factors;    ///< n x D x latent_rank(X): E(Jacobian) R, with which the features are linear in X
  NumberTarget matrices;   ///< n x D x D, exact covariances
};

/// Columns of the roots R_i of S_i = R_i R_i': those of the factors, and one for each feature where there are variances
/// or matrices. Shorter factors have columns of 0.
Index latent_rank(const Gaussians& X);

/// Inputs x + R u with |u|_p <= radius and R R' = S (spec G.1): an ellipsoid for p = 2, a box for p = infinity if S is
/// diagonal. For other p than 2 the set depends on the root: it is diag(sd), or the factors beside it, and full
/// matrices, of which no root is given, are refused.
struct InputBall {
  double radius = 1.0;  ///< of the ball
  double norm = 2.0;    ///< p: 1, 2 or infinity

  /// Throws unless the radius is finite and >= 0, and the norm one of the three and one that \p X has a root for.
  void check(const Gaussians& X) const;
};

/// out(i) = a bound of |scale o dx| over the ball of row i (spec G.6), the least one for p = 2, p = 1 and boxes.
/// \param scale of the features, one for all or one for each. \param out X.n_samples numbers.
void largest_steps(const Gaussians& X, const Vector& scale, const InputBall& ball, VectorRef out,
                   const Execution& execution);

}  // namespace halosvm
HALOSVM_PUBLIC_END
