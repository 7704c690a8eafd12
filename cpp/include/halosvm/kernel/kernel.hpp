/// \file
/// Expected kernels (spec H; Chen, Georgiou, Tannenbaum): k(X, Y) = E k(x, y) for independent x ~ X and y ~ Y, an inner
/// product of mean embeddings, hence positive semi-definite. Gaussians enter, or mixtures of them (spec K.6), a Gram
/// matrix leaves.
///
/// Each pair of covariance kinds is treated by its cheapest method, nothing is expanded, and the exponential comes
/// last, so that no dimension over- or underflows on the way.
#pragma once

#include "halosvm/gaussians/mixtures.hpp"

#include <cstdint>
#include <functional>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// The kernels whose expectations have a closed form here.
enum class KernelKind : std::uint8_t {
  rbf,         ///< exp(-sum_k gamma_k (x_k - y_k)^2)
  laplacian,   ///< exp(-sum_k gamma_k |x_k - y_k|); zero, isotropic and diagonal covariances only
  polynomial,  ///< (sum_k gamma_k x_k y_k + coef0)^degree, degree 1, 2 or 3
  linear,      ///< sum_k x_k y_k, to which covariances are nothing
};

/// A kernel, of which the expectation between two Gaussians is taken (spec H).
struct ExpectedKernel {
  KernelKind kind = KernelKind::rbf;  ///< which one
  Vector gamma = Vector::Ones(1);     ///< positive: one for all features, or one for each
  int degree = 3;                     ///< of polynomial: 1, 2 or 3
  double coef0 = 1.0;                 ///< of polynomial
  bool normalize = false;             ///< k(X, Y) / sqrt(k(X, X) k(Y, Y)); 0 where that is 0 / 0
};

/// Row-major memory of the caller for a Gram matrix, of one of two types; each row begins \p stride numbers after the
/// one before.
struct GramTarget {
  double* float64 = nullptr;  ///< exactly one of the two is not null
  float* float32 = nullptr;   ///< exactly one of the two is not null
  Index stride = 0;           ///< numbers from row to row
};

/// Told on the calling thread, from time to time, which part of the work is done.
using KernelProgress = std::function<void(double fraction)>;

/// k(X_i, Y_j), X.n_samples x Y.n_samples, by the product formula throughout; of mixtures the weighted sum over all
/// pairs of components, held for one tile of them at a time. The result does not depend on the number of threads. A
/// matrix larger than memory is written by blocks of rows of X, or into mapped memory. If X and Y are one object the
/// matrix is symmetric to the last bit, and each pair is computed once.
/// \throws std::invalid_argument for parameters out of range, features that differ, or a kind of covariance that the
/// kernel has no closed form for.
void gram(const ExpectedKernel& kernel, const Mixtures& X, const Mixtures& Y, const GramTarget& out,
          const Execution& execution, const KernelProgress& progress = {});

/// k(X_i, X_j), symmetric.
void gram(const ExpectedKernel& kernel, const Mixtures& X, const GramTarget& out, const Execution& execution,
          const KernelProgress& progress = {});

/// k(X_i, X_i) by the product formula, as on the diagonal of gram(); kernel.normalize is ignored.
Vector gram_diagonal(const ExpectedKernel& kernel, const Mixtures& X, const Execution& execution);

/// Variances of kernel expansions of uncertain points (spec K.10): out(i, p) = Var f_p(x) over x ~ X_i, where f_p(x) =
/// sum_j coefficients(p, j) h_j(x) and h_j(x) = E k(x, z) over z ~ Z_j, for the rbf kernel. Small covariances of X cost
/// no digits: the result is then close to grad f'S grad f, also relatively. With kernel.normalize each h_j is divided
/// by the root of k(Z_j, Z_j), and f by that of k(X_i, X_i), as in the Gram matrix. Each X_i costs O(m^2 d) for m
/// examples Z_j with zero, isotropic or diagonal covariances, a matrix product where all of X and Z are isotropic or Z
/// is certain; O(m^2 (d r^2 + r^3)) with factors, r being the rank of X_i and Z_j together, and the d of full matrices
/// counting as their rank.
/// \param coefficients n_problems x Z.n_samples. \param out X.n_samples x n_problems.
/// \throws std::invalid_argument as gram(), and for another kernel.
void expansion_variance(const ExpectedKernel& kernel, const Mixtures& X, const Mixtures& Z,
                        const ConstMatrixRef& coefficients, MatrixRef out, const Execution& execution);

}  // namespace halosvm
HALOSVM_PUBLIC_END
