// Covariances of any kind come in, factors F_i with S_i = F_i F_i' go out.

#include "gaussians/covariances/factored.hpp"

#include "halosvm/gaussians/covariances/full.hpp"
#include "halosvm/gaussians/subspace.hpp"

namespace halosvm {
namespace {

/// All S_i as matrices of unit diagonal. \param deviations set to the roots of the diagonals, n_samples x n_features.
std::vector<double> correlations(const Covariances& covariances, Matrix& deviations) {
  const Index n = covariances.n_samples();
  const Index d = covariances.n_features();
  Vector scratch(covariances.scratch_size({1, 1}));
  std::vector<double> all(static_cast<std::size_t>(n * d * d), 0.0);
  for (Index i = 0; i < n; ++i) {
    MatrixMap matrix(all.data() + i * d * d, d, d);
    covariances.add_weighted_matrices({i, 1}, Vector::Ones(1), matrix, scratch.data());
    matrix.triangularView<Eigen::StrictlyUpper>() = matrix.transpose();
    deviations.row(i) = matrix.diagonal().cwiseSqrt().transpose();
    const Vector inverse = deviations.row(i).transpose().unaryExpr([](double s) { return s > 0.0 ? 1.0 / s : 0.0; });
    matrix = inverse.asDiagonal() * matrix * inverse.asDiagonal();
  }
  return all;
}

}  // namespace

Factored::Factored(const Covariances& covariances, const Execution& execution) {
  const Index n = covariances.n_samples();
  const Index d = covariances.n_features();
  Matrix deviations(n, d);
  const std::vector<double> matrices = correlations(covariances, deviations);
  const SubspaceFactors factors = truncate(FullCovariances(ArrayView(matrices.data(), n * d, d), n), 1.0, execution);
  offsets_ = factors.offsets();
  values_.resize(static_cast<std::size_t>(d * offsets_.back()));
  factors.write(values_.data());
  double* row = values_.data();
  for (Index i = 0; i < n; ++i) {
    const Index rank = offsets_[static_cast<std::size_t>(i + 1)] - offsets_[static_cast<std::size_t>(i)];
    for (Index j = 0; j < d; ++j, row += rank) VectorMap(row, rank) *= deviations(i, j);
  }
  covariances_ =
      low_rank_covariances(ArrayView(values_.data(), 1, static_cast<Index>(values_.size())), offsets_.data(), n, d);
}

}  // namespace halosvm
