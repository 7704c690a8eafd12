// A batch of Gaussians: its checks, and the sizes of blocks that are read at once.

#include "halosvm/gaussians/gaussians.hpp"

#include "halosvm/core/check.hpp"

#include <algorithm>
#include <utility>

namespace halosvm {

Gaussians::Gaussians(std::shared_ptr<const Means> means, std::shared_ptr<const Covariances> covariances)
    : means_(check::given(std::move(means), "means")),
      covariances_(check::given(std::move(covariances), "covariances")) {
  check::same_size("covariances", covariances_->n_samples(), "means", n_samples(), "rows");
  check::same_size("covariances", covariances_->n_features(), "means", n_features(), "columns");
}

Index Gaussians::block_rows() const {
  constexpr Index small = 262144;
  constexpr Index large = 524288;
  const Index row_bytes = std::max<Index>(1, means_->row_bytes() + covariances_->row_bytes());
  const Index rows = std::max(small / row_bytes, std::min<Index>(16, large / row_bytes));
  constexpr Index largest = 1048576;
  const Index sparse = std::min(means_->rows_worth_a_vector(), largest / row_bytes);
  return std::max(std::clamp<Index>(rows, 1, 256), sparse);
}

Index Gaussians::task_rows() const {
  constexpr Index start = 50000;  // ns
  constexpr Index loss = 15;      // ns for a row, and about one more for each number that is read
  const Index numbers = (means_->row_bytes() + covariances_->row_bytes()) / static_cast<Index>(sizeof(double));
  constexpr Index vectors = 4;  // of sums over sparse rows, which add up fast beside so many
  return std::max({block_rows(), start / (loss + numbers), vectors * means_->rows_worth_a_vector()});
}

void Gaussians::check(const std::string& argument, const Execution& execution) const {
  means_->check(argument, execution);
}

void Gaussians::check_once(const Execution& execution) const {
  means_->check_once("means", execution);
  covariances_->check_once("covariances", execution);
}

const Gaussians& Gaussians::assume_checked() const {
  means_->assume_checked();
  covariances_->assume_checked();
  return *this;
}

}  // namespace halosvm
