#include "halosvm/gaussians.hpp"

#include "halosvm/check.hpp"

#include <algorithm>
#include <utility>

namespace halosvm {

Gaussians::Gaussians(const Table& means, std::shared_ptr<const Covariances> covariances)
    : means_(means), covariances_(std::move(covariances)) {
  check::same_size("covariances", covariances_->n_samples(), "means", n_samples(), "rows");
  check::same_size("covariances", covariances_->n_features(), "means", n_features(), "columns");
}

Index Gaussians::block_rows() const {
  constexpr Index block_bytes = 32768;
  const Index row_bytes = std::max<Index>(1, means_.row_bytes() + covariances_->row_bytes());
  return std::clamp<Index>(block_bytes / row_bytes, 4, 256);
}

void Gaussians::check(const std::string& argument, const Execution& execution) const {
  means_.check(argument, -largest_value, "it must be finite", execution);
}

}  // namespace halosvm
