// The errors of measurements: every covariance kind enters here, variances and matrices of single rows leave.

#include "population/noise.hpp"

#include "halosvm/gaussians/covariances/diagonal.hpp"
#include "halosvm/gaussians/covariances/full.hpp"
#include "halosvm/gaussians/covariances/isotropic.hpp"
#include "halosvm/gaussians/covariances/zero.hpp"

#include <algorithm>

namespace halosvm::population {

Noise::Noise(const Covariances& covariances) : covariances_(covariances) {
  if (dynamic_cast<const ZeroCovariances*>(&covariances) != nullptr) {
    kind_ = Kind::zero;
  } else if (const auto* isotropic = dynamic_cast<const IsotropicCovariances*>(&covariances)) {
    kind_ = Kind::isotropic;
    variances_ = &isotropic->variances();
  } else if (const auto* diagonal = dynamic_cast<const DiagonalCovariances*>(&covariances)) {
    kind_ = Kind::diagonal;
    variances_ = &diagonal->variances();
  } else if (const auto* full = dynamic_cast<const FullCovariances*>(&covariances)) {
    matrices_ = &full->matrices();
  }
}

Index Noise::scratch_size(Index rows) const {
  const Index d = n_features();
  return std::max(rows * d, d * d + std::max(2 * d * d, covariances_.scratch_size({1, 1})));
}

void Noise::variances(const Rows& rows, MatrixMap out, double* scratch) const {
  if (kind_ == Kind::zero) {
    out.setZero();
    return;
  }
  const ConstMatrixMap block = variances_->block(rows, scratch);
  if (kind_ == Kind::diagonal) {
    out = block;
  } else {
    out = block.col(0).replicate(1, n_features());
  }
}

const double* Noise::stored_matrix(Index row, double* scratch) const {
  const Index size = n_features() * n_features();
  return matrices_->values(row * size, size, scratch);
}

void Noise::matrix(Index row, MatrixMap out, double* scratch) const {
  const Index d = n_features();
  if (full()) {
    // The lower triangle alone, as in every other place that reads one matrix at a time.
    out = ConstMatrixMap(stored_matrix(row, scratch), d, d).selfadjointView<Eigen::Lower>();
    return;
  }
  out.setZero();
  if (zero()) return;
  if (diagonal()) {
    variances({row, 1}, MatrixMap(scratch, 1, d), scratch + d);
    out.diagonal() = VectorMap(scratch, d);
    return;
  }
  covariances_.add_weighted_matrices({row, 1}, Vector::Ones(1), out, scratch);
  out.triangularView<Eigen::StrictlyUpper>() = out.transpose();
}

void Noise::signature(Index row, const unsigned char* there, std::vector<double>& out, double* scratch) const {
  const Index d = n_features();
  out.clear();
  if (zero()) return;
  if (kind_ == Kind::isotropic) {
    out.push_back(*variances_->block({row, 1}, scratch).data());
    return;
  }
  if (kind_ == Kind::diagonal) {
    const double* values = variances_->block({row, 1}, scratch).data();
    for (Index j = 0; j < d; ++j) out.push_back(there[j] != 0 ? values[j] : 0.0);
    return;
  }
  MatrixMap S(scratch, d, d);
  matrix(row, S, scratch + d * d);
  for (Index i = 0; i < d; ++i) {
    for (Index j = 0; j <= i; ++j) out.push_back((there[i] & there[j]) != 0 ? S(i, j) : 0.0);
  }
}

}  // namespace halosvm::population
