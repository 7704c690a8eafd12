/// \file
/// The rows of one batch, with T = V + S factorised for each and its components. Private to populations.
#pragma once

#include "population/batches.hpp"
#include "population/lane_rows.hpp"

#include <utility>

namespace halosvm::population {

/// Factors of the first blocks stay in memory, as many as the cache of a processor holds; those of the others are made
/// again in each sweep.
class BatchRows {
 public:
  /// Of a block: values, which are there, weights, and for each component L^-1 with T = L L', 0 where values are
  /// missing, followed by log a_k - 1/2 log|2 pi T|.
  struct Slot {
    double* x;
    double* there;
    double* weight;
    double* components;
  };

  BatchRows(const Population& population, const BatchedMeasurements::Prepared& data);

  /// Goes to the blocks begin() ... end() - 1 of a batch.
  void open(Index batch, Failure& failure, Checkpoint& checkpoint);
  Index begin() const { return begin_; }
  Index end() const { return end_; }

  /// The components of a block, the first and the end.
  std::pair<Index, Index> components(Index block) const {
    return components_of(population_, data_.blocks[static_cast<std::size_t>(block)].label);
  }
  /// The most of them.
  Index width() const { return width_; }

  /// What is kept of a block; valid until the next call. The failure has the row whose T is singular.
  Slot slot(Index block);

  /// From L^-1 of a component to that of the next.
  Index stride() const { return (triangle_ + 1) * kernels::lanes; }
  kernels::Pack constant(const double* inverse) const { return kernels::load(inverse + triangle_ * kernels::lanes); }

  /// w = T^-1 (x - m_k - o); returns (x - m_k - o)' w.
  kernels::Pack pull(const Slot& slot, const double* inverse, Index k, const Vector& offset, double* w);

 private:
  void prepare(const BatchedMeasurements::Prepared::Block& block, const Slot& slot);

  const Population& population_;
  const BatchedMeasurements::Prepared& data_;
  Index d_;
  Index triangle_;
  Index width_ = 1;
  Index slot_size_;
  Index cached_;
  Vector log_weights_;
  std::vector<Matrix> covariances_;
  LaneRows reader_;
  Vector lower_, pivots_, residual_, cache_;
  Index begin_ = 0;
  Index end_ = 0;
  Index prepared_ = 0;  ///< number of blocks that have been
  Failure* failure_ = nullptr;
  Checkpoint* checkpoint_ = nullptr;
};

}  // namespace halosvm::population
