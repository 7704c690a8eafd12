// Gaussians of any kind come in, rows of a tile of a Gram matrix go out, unpacked.

#include "kernel/batch.hpp"

#include "halosvm/core/check.hpp"
#include "kernel/lanes.hpp"
#include "linalg/multiply.hpp"

#include <algorithm>
#include <string>

namespace halosvm::kernels {

Side::Side(const Gaussians& data, const Vector& scale, const Vector& centre)
    : data_(data),
      scale_(scale),
      centre_(centre),
      isotropic_(dynamic_cast<const IsotropicCovariances*>(&data.covariances())),
      diagonal_(dynamic_cast<const DiagonalCovariances*>(&data.covariances())),
      low_rank_(dynamic_cast<const LowRankCovariances*>(&data.covariances())),
      full_(dynamic_cast<const FullCovariances*>(&data.covariances())) {
  if (low_rank_ != nullptr) diagonal_ = low_rank_->diagonal();
  check::require(!certain() || data.covariances().certain(), "covariances",
                 std::string("are ") + data.covariances().kind() + ", which kernels do not know");
}

bool Side::certain() const {
  return isotropic_ == nullptr && diagonal_ == nullptr && low_rank_ == nullptr && full_ == nullptr;
}

bool Side::uniform() const { return diagonal_ == nullptr && (isotropic_ == nullptr || scale_.size() == 1); }

Index Side::rank() const { return low_rank_ != nullptr ? low_rank_->largest_rank() : 0; }

void Block::load(const Side& side, Index first, Index n_rows) {
  if (begin == first && count == n_rows) return;
  const Index d = side.data().n_features();
  begin = first;
  count = n_rows;
  scratch_.resize(count, d);
  mean.setZero(padded(count), d);
  mean.topRows(count) =
      side.data().means().block({begin, count}, scratch_.data()).rowwise() - side.centre().transpose();
  if (side.scale().size() == 1) {
    mean *= side.scale()(0);
  } else {
    mean.array().rowwise() *= side.scale().transpose().array();
  }
  norm = mean.rowwise().squaredNorm();
  load_variances(side);
  load_factors(side);
  load_matrices(side);
}

void Block::load_variances(const Side& side) {
  const Index d = side.data().n_features();
  const Vector squared = side.scale().cwiseAbs2();
  variance.setZero(padded(count), side.uniform() ? 1 : d);
  if (side.isotropic() != nullptr) {
    const ConstVectorMap t(side.isotropic()->variances().block({begin, count}, scratch_.data()).data(), count);
    linalg::multiply(t, squared.transpose(), variance.topRows(count));
  } else if (side.diagonal() != nullptr) {
    variance.topRows(count) = side.diagonal()->variances().block({begin, count}, scratch_.data());
    if (squared.size() == 1) {
      variance *= squared(0);
    } else {
      variance.array().rowwise() *= squared.transpose().array();
    }
  }
}

void Block::load_factors(const Side& side) {
  rank = 0;
  factor.resize(0, side.data().n_features());
  if (side.low_rank() == nullptr) return;
  for (Index i = 0; i < count; ++i) rank = std::max(rank, side.low_rank()->rank(begin + i));
  factor.setZero(rank * padded(count), side.data().n_features());
  for (Index i = 0; i < count; ++i) {
    side.low_rank()->copy_factor(begin + i, scratch_);
    for (Index a = 0; a < scratch_.cols(); ++a) {
      auto row = factor.row(a * padded(count) + i);
      if (side.scale().size() == 1) {
        row = side.scale()(0) * scratch_.col(a).transpose();
      } else {
        row = side.scale().cwiseProduct(scratch_.col(a)).transpose();
      }
    }
  }
}

void Block::load_matrices(const Side& side) {
  if (side.full() == nullptr) return;
  const Index d = side.data().n_features();
  matrix.resize(count * d, d);
  scratch_.resize(d, d);
  for (Index i = 0; i < count; ++i) {
    auto scaled = matrix.middleRows(i * d, d);
    scaled = side.full()->matrices().block({(begin + i) * d, d}, scratch_.data());
    if (side.scale().size() == 1) {
      scaled *= side.scale()(0) * side.scale()(0);
    } else {
      scaled = side.scale().asDiagonal() * scaled * side.scale().asDiagonal();
    }
  }
}

}  // namespace halosvm::kernels
