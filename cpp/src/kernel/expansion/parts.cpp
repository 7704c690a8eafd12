// What the moments of correlated covariances share.

#include "kernel/expansion/parts.hpp"

#include "linalg/pivoted_cholesky.hpp"

namespace halosvm::kernels {

void Parts::load(const Block& block, Index i) {
  const Index d = block.mean.cols();
  mean = block.mean.row(i).transpose();
  if (block.uniform()) {
    v.setConstant(d, block.variance(i, 0));
  } else {
    v = block.variance.row(i).transpose();
  }
  matrix.resize(0, 0);
  if (block.matrix.rows() > 0) matrix = block.matrix.middleRows(i * d, d);
  F.resize(d, block.rank);
  for (Index a = 0; a < block.rank; ++a) F.col(a) = block.factor.row(a * block.mean.rows() + i).transpose();
}

void Parts::factor_matrix() {
  if (matrix.size() == 0) return;
  F = linalg::pivoted_cholesky(matrix);
  matrix.resize(0, 0);
}

std::optional<double> log_near_identity(MatrixXd& change) {
  double sum = 0.0;
  for (Index c = 0; c < change.rows(); ++c) {
    const double pivot = change(c, c);
    if (!(std::abs(pivot) < 0.5)) return {};
    sum += std::log1p(pivot);
    const Index left = change.rows() - c - 1;
    change.col(c).tail(left) /= 1.0 + pivot;
    change.bottomRightCorner(left, left).noalias() -= change.col(c).tail(left) * change.row(c).tail(left);
  }
  return sum;
}

}  // namespace halosvm::kernels
