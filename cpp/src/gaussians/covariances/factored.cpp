// Covariances of any kind come in, factors F_i with S_i = F_i F_i' go out.

#include "gaussians/covariances/factored.hpp"

namespace halosvm {

Factored::Factored(const Covariances& covariances, const Execution& execution) : offsets_(1, 0) {
  const Index n = covariances.n_samples();
  std::vector<Matrix> roots(static_cast<std::size_t>(n));
  run_tasks(n, execution, [&](Index i, int /*slot*/, Checkpoint& checkpoint) {
    checkpoint();
    covariances.root(i, roots[static_cast<std::size_t>(i)]);
  });
  for (const Matrix& root : roots) {
    values_.insert(values_.end(), root.data(), root.data() + root.size());
    offsets_.push_back(offsets_.back() + root.cols());
  }
  covariances_ = low_rank_covariances(ArrayView(values_.data(), 1, static_cast<Index>(values_.size())), offsets_.data(),
                                      n, covariances.n_features());
}

}  // namespace halosvm
