// Cholesky decompositions of eight matrices side by side, of which only the pivots matter.

#include "linalg/positive_definite.hpp"

namespace halosvm::linalg {
namespace {

using Pack = Eigen::Array<double, side_by_side, 1>;

Eigen::Map<Pack> at(double* lower, Index i, Index j) { return Eigen::Map<Pack>(lower + packed_entry(i, j)); }

/// Column \p j of \p rows rows from \p i on, whose earlier columns are there. \param inverse of the pivot.
template <int rows>
void eliminate(double* lower, Index i, Index j, const Pack& inverse) {
  Pack sums[rows];
  const double* own[rows];
  for (int r = 0; r < rows; ++r) {
    sums[r] = at(lower, i + r, j);
    own[r] = lower + packed_entry(i + r, 0);
  }
  const double* pivots = lower + packed_entry(j, 0);
  for (Index k = 0; k < j * side_by_side; k += side_by_side) {
    const Pack pivot = Eigen::Map<const Pack>(pivots + k);
    for (int r = 0; r < rows; ++r) sums[r] -= Eigen::Map<const Pack>(own[r] + k) * pivot;
  }
  for (int r = 0; r < rows; ++r) at(lower, i + r, j) = sums[r] * inverse;
}

}  // namespace

std::uint32_t not_positive_definite(double* lower, Index order) {
  std::uint32_t failed = 0;
  for (Index j = 0; j < order; ++j) {
    eliminate<1>(lower, j, j, Pack::Ones());
    Pack pivot = at(lower, j, j);
    for (Index lane = 0; lane < side_by_side; ++lane) {
      if (pivot(lane) > 0.0) continue;
      failed |= 1U << static_cast<std::uint32_t>(lane);
      pivot(lane) = 1.0;
    }
    const Pack inverse = pivot.sqrt().inverse();
    Index i = j + 1;
    for (; i + 4 <= order; i += 4) eliminate<4>(lower, i, j, inverse);
    for (; i < order; ++i) eliminate<1>(lower, i, j, inverse);
  }
  return failed;
}

}  // namespace halosvm::linalg
