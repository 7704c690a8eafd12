// Cholesky factors with pivots, which keep what is small beside what is large.

#include "linalg/pivoted_cholesky.hpp"

#include <cmath>
#include <limits>

namespace halosvm::linalg {

Eigen::MatrixXd pivoted_cholesky(const Eigen::Ref<const Eigen::MatrixXd>& S) {
  const Index d = S.rows();
  const double rounding = 4.0 * static_cast<double>(d) * std::numeric_limits<double>::epsilon();
  Eigen::MatrixXd F = Eigen::MatrixXd::Zero(d, d);
  Vector left = S.diagonal();
  const Vector least = rounding * left;
  Index rank = 0;
  for (; rank < d; ++rank) {
    Index pivot = -1;
    for (Index k = 0; k < d; ++k) {
      if (left(k) > least(k) && (pivot < 0 || left(k) > left(pivot))) pivot = k;
    }
    if (pivot < 0) break;
    F(pivot, rank) = std::sqrt(left(pivot));
    left(pivot) = 0.0;
    for (Index k = 0; k < d; ++k) {
      if (!(left(k) > least(k))) continue;
      const double entry = k > pivot ? S(k, pivot) : S(pivot, k);
      F(k, rank) = (entry - F.row(k).head(rank).dot(F.row(pivot).head(rank))) / F(pivot, rank);
      left(k) -= F(k, rank) * F(k, rank);
    }
  }
  F.conservativeResize(d, rank);
  return F;
}

}  // namespace halosvm::linalg
