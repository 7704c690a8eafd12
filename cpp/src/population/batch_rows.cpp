// The rows of a batch: eight at a time, values and errors enter, factors of T = V + S leave.

#include "population/batch_rows.hpp"

#include "halosvm/core/normal.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::population {

using kernels::lanes;
using kernels::load;
using kernels::Pack;

namespace {

constexpr Index kept_doubles = 1 << 17;

}  // namespace

BatchRows::BatchRows(const Population& population, const BatchedMeasurements::Prepared& data)
    : population_(population),
      data_(data),
      d_(population.n_features()),
      triangle_(packed(d_, 0)),
      log_weights_(log_weights(population)),
      reader_(data.measurements.prepared().data, data.measurements.prepared().noise),
      lower_(triangle_ * lanes),
      pivots_(d_ * lanes),
      residual_(d_ * lanes) {
  for (Index k = 0; k < population.n_components(); ++k) covariances_.push_back(population.covariance(k));
  for (const auto& block : data.blocks) {
    const auto range = components_of(population, block.label);
    width_ = std::max(width_, range.second - range.first);
  }
  slot_size_ = (2 * d_ + 1) * lanes + width_ * stride();
  cached_ = std::max<Index>(1, kept_doubles / slot_size_);
}

void BatchRows::open(Index batch, Failure& failure, Checkpoint& checkpoint) {
  begin_ = data_.begins[static_cast<std::size_t>(batch)];
  end_ = data_.begins[static_cast<std::size_t>(batch) + 1];
  prepared_ = 0;
  failure_ = &failure;
  checkpoint_ = &checkpoint;
  cache_.resize(std::min(end_ - begin_, cached_ + 1) * slot_size_);
}

BatchRows::Slot BatchRows::slot(Index block) {
  const Index place = block - begin_;
  double* at = cache_.data() + std::min(place, cached_) * slot_size_;
  const Slot out{at, at + d_ * lanes, at + 2 * d_ * lanes, at + (2 * d_ + 1) * lanes};
  if (place < std::min(prepared_, cached_)) return out;
  (*checkpoint_)();
  prepare(data_.blocks[static_cast<std::size_t>(block)], out);
  prepared_ = std::max(prepared_, place + 1);
  return out;
}

void BatchRows::prepare(const BatchedMeasurements::Prepared::Block& block, const Slot& slot) {
  reader_.read(data_.rows.data() + block.first, block.count);
  for (Index l = 0; l < lanes; ++l) {
    const Index item = block.first + std::min(l, block.count - 1);
    slot.weight[l] = l < block.count ? data_.weights[static_cast<std::size_t>(item)] : 0.0;
    for (Index j = 0; data_.grouped() && j < d_; ++j) reader_.x(j * lanes + l) = data_.means(item, j);
  }
  std::copy_n(reader_.x.data(), d_ * lanes, slot.x);
  std::copy_n(reader_.there.data(), d_ * lanes, slot.there);
  Pack present = Pack::Zero();
  for (Index j = 0; j < d_; ++j) present += load(slot.there + j * lanes);
  const auto range = components_of(population_, block.label);
  double* inverse = slot.components;
  for (Index k = range.first; k < range.second; ++k, inverse += stride()) {
    kernels::LogProduct determinant;
    const Pack good = lane_cholesky(d_, reader_.total(covariances_[static_cast<std::size_t>(k)]), lower_.data(),
                                    pivots_.data(), determinant);
    for (Index l = 0; l < block.count; ++l) {
      if (good(l) < 0.5) failure_->merge({data_.rows[static_cast<std::size_t>(block.first + l)], k});
    }
    lane_inverse(d_, lower_.data(), pivots_.data(), slot.there, inverse);
    store(inverse + triangle_ * lanes, log_weights_(k) - 0.5 * (determinant.log() + log_two_pi * present));
  }
}

Pack BatchRows::pull(const Slot& slot, const double* inverse, Index k, const Vector& offset, double* w) {
  for (Index j = 0; j < d_; ++j) {
    const Pack rest = load(slot.x + j * lanes) - (population_.means(k, j) + offset(j));
    store(&residual_(j * lanes), rest * load(slot.there + j * lanes));
  }
  return lane_pull(d_, inverse, residual_.data(), w);
}

}  // namespace halosvm::population
