/// \file
/// How one tile of a Gram matrix is computed: a rule for each way in which two kinds of covariances combine.
#pragma once

#include "kernel/batch.hpp"
#include "halosvm/kernel/kernel.hpp"

#include <memory>

namespace halosvm::kernels {

/// Owns the memory it works in, hence one for each thread.
class PairRule {
 public:
  virtual ~PairRule() = default;
  /// Rows and columns of a tile, a multiple of \ref lanes.
  virtual Index block_rows() const = 0;
  /// Whether \ref fill gives -log k instead of k.
  virtual bool logarithmic() const { return true; }
  /// out(i, j) = -log k(X_i, Y_j), or k(X_i, Y_j); out: x.count x padded(y.count), columns beyond y.count undefined.
  /// Meets the checkpoint every few milliseconds.
  virtual void fill(const Block& x, const Block& y, MatrixRef out, Checkpoint& checkpoint) = 0;
};

/// In units of the bandwidth, exp(-|x - y|^2 / 2): the rule for the covariances of two batches.
std::unique_ptr<PairRule> make_rbf_rule(const Side& x, const Side& y);
std::unique_ptr<PairRule> make_factor_rule(const Side& x, const Side& y);
std::unique_ptr<PairRule> make_dense_rule(const Side& x, const Side& y);
std::unique_ptr<PairRule> make_laplacian_rule(const Side& x, const Side& y);
std::unique_ptr<PairRule> make_polynomial_rule(const Side& x, const Side& y, int degree, double coef0);

/// out(i, j) = |x_i - y_j|^2 for the padded rows of y. Where the expansion |x|^2 + |y|^2 - 2 x'y would lose more than
/// ten bits the differences are taken, so that equal points have distance 0.
void squared_distances(const Block& x, const Block& y, MatrixRef out);

/// 1/2 (log |A + F F'| + d'(A + F F')^-1 d) from \p logs, log |A|, and \p stacked, [G e; I 0] with
/// [G e] = A^-1/2 [F d], of which a QR decomposition leaves the triangle: it holds the Cholesky factor of I + G'G, and
/// the root of the quadratic form as the least |e - G z|^2 + |z|^2. Nothing is squared, so that factors a million times
/// the bandwidth cost six digits, not twelve. \p residual, if any, becomes [e - G z; -z].
double orthogonal_exponent(Eigen::MatrixXd& stacked, double logs, Vector* residual = nullptr);

}  // namespace halosvm::kernels
