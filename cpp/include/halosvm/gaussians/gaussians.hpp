/// \file
/// The data: a batch of Gaussians, each a mean and a covariance. Only a view; the caller keeps the arrays.
#pragma once

#include "halosvm/gaussians/covariances.hpp"
#include "halosvm/gaussians/array_view.hpp"

#include <memory>
#include <string>

namespace halosvm {

class Gaussians {
 public:
  /// \param means n_samples x n_features. \param covariances of the same shape.
  /// \throws std::invalid_argument when the shapes differ.
  Gaussians(const ArrayView& means, std::shared_ptr<const Covariances> covariances);

  Index n_samples() const { return means_.rows(); }
  Index n_features() const { return means_.cols(); }
  const ArrayView& means() const { return means_; }
  const Covariances& covariances() const { return *covariances_; }
  const std::shared_ptr<const Covariances>& shared_covariances() const { return covariances_; }

  /// Rows of a block, 1 to 256: those that fit into 128 KiB, or up to 16 that fit into 512 KiB, so that a block stays
  /// in the cache while it is worked on and weights are not read anew for every few rows.
  Index block_rows() const;

  /// Rows that a pass gives to one thread at least: a block, and enough to take longer than it takes to start a thread.
  Index task_rows() const;

  /// Throws unless all means are finite and at most 1e150 in size.
  void check(const std::string& argument, const Execution& execution) const;

 private:
  ArrayView means_;
  std::shared_ptr<const Covariances> covariances_;
};

}  // namespace halosvm
