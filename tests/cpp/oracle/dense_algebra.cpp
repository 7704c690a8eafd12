// Products of dense matrices, compiled once.

#include "oracle/dense_algebra.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace oracle {

Matrix product(const ConstMatrixRef& A, const ConstMatrixRef& B) { return A * B; }

Vector times(const ConstMatrixRef& A, const ConstVectorRef& x) { return A * x; }

Matrix congruent(const ConstMatrixRef& A, const ConstMatrixRef& S) { return product(A, product(A, S).transpose()); }

double bilinear(const ConstVectorRef& x, const ConstMatrixRef& S, const ConstVectorRef& y) {
  double sum = 0.0;
  for (Index i = 0; i < x.size(); ++i) {
    double inner = 0.0;
    for (Index j = 0; j < y.size(); ++j) inner += S(i, j) * y(j);
    sum += x(i) * inner;
  }
  return sum;
}

double largest_difference(const ConstMatrixRef& A, const ConstMatrixRef& B) {
  double largest = 0.0;
  for (Index i = 0; i < A.rows(); ++i) {
    for (Index j = 0; j < A.cols(); ++j) {
      const double difference = std::abs(A(i, j) - B(i, j));
      if (std::isnan(difference)) return difference;
      largest = std::max(largest, difference);
    }
  }
  return largest;
}

double distance(const ConstMatrixRef& A, const ConstMatrixRef& B) {
  double square = 0.0;
  for (Index i = 0; i < A.rows(); ++i) {
    for (Index j = 0; j < A.cols(); ++j) square += (A(i, j) - B(i, j)) * (A(i, j) - B(i, j));
  }
  return std::sqrt(square);
}

Matrix random_orthogonal(Index d, Random& random) {
  Matrix Q = random.normal_matrix(d, d);
  for (Index i = 0; i < d; ++i) {
    double* row = Q.data() + i * d;
    for (int again = 0; again < 2; ++again) {  // for right angles to the last digits
      for (Index j = 0; j < i; ++j) {
        const double* other = Q.data() + j * d;
        const double along = std::inner_product(row, row + d, other, 0.0);
        for (Index k = 0; k < d; ++k) row[k] -= along * other[k];
      }
    }
    const double length = std::sqrt(std::inner_product(row, row + d, row, 0.0));
    for (Index k = 0; k < d; ++k) row[k] /= length;
  }
  return Q;
}

}  // namespace oracle
