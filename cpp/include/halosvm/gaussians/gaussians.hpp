/// \file
/// The data: a batch of Gaussians, each a mean and a covariance. Only a view; the caller keeps the arrays.
#pragma once

#include "halosvm/gaussians/covariances.hpp"
#include "halosvm/gaussians/means.hpp"

#include <memory>
#include <string>
#include <utility>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Examples N(x_i, S_i): means and covariances, of any kind each.
class Gaussians {
 public:
  /// \param means n_samples x n_features. \param covariances of the same shape.
  /// \throws std::invalid_argument when the shapes differ.
  Gaussians(std::shared_ptr<const Means> means, std::shared_ptr<const Covariances> covariances);
  /// The same for an array of means.
  Gaussians(const ArrayView& means, std::shared_ptr<const Covariances> covariances)
      : Gaussians(std::make_shared<DenseMeans>(means), std::move(covariances)) {}
  /// The same for a sparse array of means.
  Gaussians(const SparseView& means, std::shared_ptr<const Covariances> covariances)
      : Gaussians(std::make_shared<SparseMeans>(means), std::move(covariances)) {}

  /// Number of examples.
  Index n_samples() const { return means_->rows(); }
  /// Number of features.
  Index n_features() const { return means_->cols(); }
  /// The x_i.
  const Means& means() const { return *means_; }
  /// The x_i, for others that keep them.
  const std::shared_ptr<const Means>& shared_means() const { return means_; }
  /// The S_i.
  const Covariances& covariances() const { return *covariances_; }
  /// The S_i, for others that keep them.
  const std::shared_ptr<const Covariances>& shared_covariances() const { return covariances_; }

  /// Rows of a block, 1 to 256: those that fit into 128 KiB, or up to 16 that fit into 512 KiB, so that a block stays
  /// in the cache while it is worked on and weights are not read anew for every few rows. Of sparse rows more, up to
  /// 1 MiB, where all of them together would store less than one vector of all features.
  Index block_rows() const;

  /// Rows that a pass gives to one thread at least: a block, and enough to take longer than it takes to start a thread.
  Index task_rows() const;

  /// Throws unless all means are finite and at most 1e150 in size.
  void check(const std::string& argument, const Execution& execution) const;

  /// Throws std::invalid_argument that names the row and the value unless all means are as above and all covariances
  /// finite and positive semi-definite; once for these arrays. What takes Gaussians does it before it reads them.
  void check_once(const Execution& execution) const;
  /// Leaves that out: the caller vouches for the numbers. \returns itself.
  const Gaussians& assume_checked() const;

 private:
  std::shared_ptr<const Means> means_;
  std::shared_ptr<const Covariances> covariances_;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
