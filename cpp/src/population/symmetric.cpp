// Cholesky's factor of small matrices, row by row, so that every inner loop runs over contiguous numbers.

#include "population/symmetric.hpp"

#include <cmath>

namespace halosvm::population {

bool cholesky(MatrixRef A) {
  const Index n = A.rows();
  for (Index i = 0; i < n; ++i) {
    const double diagonal = A(i, i);
    for (Index j = 0; j < i; ++j) A(i, j) = (A(i, j) - A.row(i).head(j).dot(A.row(j).head(j))) / A(j, j);
    const double pivot = diagonal - A.row(i).head(i).squaredNorm();
    if (!(pivot > singular_pivot * static_cast<double>(n) * diagonal && pivot > smallest_variance)) return false;
    A(i, i) = std::sqrt(pivot);
  }
  return std::isfinite(A.diagonal().sum());
}

void invert_lower(MatrixRef L) {
  const Index n = L.rows();
  for (Index i = 0; i < n; ++i) {
    const double inverse = 1.0 / L(i, i);
    // Row i of the inverse: -(row i of L left of the diagonal) (the rows of the inverse above) / L(i, i).
    for (Index j = 0; j < i; ++j) {
      double sum = 0.0;
      for (Index p = j; p < i; ++p) sum += L(i, p) * L(p, j);
      L(j, i) = -inverse * sum;  // parked above the diagonal, since L(i, p) is needed for the next j
    }
    for (Index j = 0; j < i; ++j) {
      L(i, j) = L(j, i);
      L(j, i) = 0.0;
    }
    L(i, i) = inverse;
  }
}

double log_determinant(const ConstMatrixRef& L) {
  double sum = 0.0;
  for (Index i = 0; i < L.rows(); ++i) sum += std::log(L(i, i));
  return 2.0 * sum;
}

void solve(const ConstMatrixRef& L, MatrixRef B) {
  const Index n = L.rows();
  for (Index i = 0; i < n; ++i) {
    for (Index p = 0; p < i; ++p) B.row(i) -= L(i, p) * B.row(p);
    B.row(i) /= L(i, i);
  }
  for (Index i = n - 1; i >= 0; --i) {
    for (Index p = i + 1; p < n; ++p) B.row(i) -= L(p, i) * B.row(p);
    B.row(i) /= L(i, i);
  }
}

}  // namespace halosvm::population
