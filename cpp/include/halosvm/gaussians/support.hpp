/// \file
/// The columns that a few examples store: rows come in, a list of columns goes out, for work on these alone.
#pragma once

#include "halosvm/gaussians/gaussians.hpp"

#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// The columns in which the means or covariances of a few examples may be other than 0.
class Support {
 public:
  /// Of examples with so many features.
  explicit Support(Index n_features) : marked_(static_cast<std::size_t>(n_features), 0) {}
  /// Finds the columns of these rows. \param covariances false leaves out those of the covariances.
  void find(const Gaussians& data, const Rows& rows, bool covariances);
  /// Whether they are all columns, or so many that work on whole rows is faster.
  bool all() const { return all_; }
  /// Otherwise the columns, each once.
  const std::vector<Index>& columns() const { return columns_; }
  /// Makes rows that are 0 outside of these columns 0.
  void clear(MatrixRef rows) const;

 private:
  std::vector<char> marked_;
  std::vector<Index> columns_;
  bool all_ = true;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
