/// \file
/// How one tile of a Gram matrix is computed: a rule for each way in which two kinds of covariances combine.
#pragma once

#include "block.hpp"
#include "halosvm/kernel.hpp"

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

}  // namespace halosvm::kernels
