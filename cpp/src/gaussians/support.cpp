// The columns of a few examples, each once.

#include "halosvm/gaussians/support.hpp"

#include <algorithm>

namespace halosvm {

void Support::find(const Gaussians& data, const Rows& rows, bool covariances) {
  constexpr Index whole = 4;  // as many columns in the list cost more than all of them in their order
  columns_.clear();
  all_ = !data.means().add_support(rows, columns_) ||
         (covariances && !data.covariances().add_support(rows, columns_)) ||
         whole * static_cast<Index>(columns_.size()) > data.n_features();
  if (all_) return;
  const auto seen = [this](Index column) {
    char& mark = marked_[static_cast<std::size_t>(column)];
    const bool before = mark != 0;
    mark = 1;
    return before;
  };
  columns_.erase(std::remove_if(columns_.begin(), columns_.end(), seen), columns_.end());
  for (const Index column : columns_) marked_[static_cast<std::size_t>(column)] = 0;
}

void Support::clear(MatrixRef rows) const {
  if (all_) {
    rows.setZero();
    return;
  }
  for (Index k = 0; k < rows.rows(); ++k) {
    for (const Index j : columns_) rows(k, j) = 0.0;
  }
}

}  // namespace halosvm
