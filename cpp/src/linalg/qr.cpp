// QR decompositions by reflections, which many columns meet in blocks: products of matrices.

#include "linalg/qr.hpp"

#include "linalg/multiply.hpp"

#include <Eigen/Householder>
#include <Eigen/QR>

#include <algorithm>

namespace halosvm::linalg {
namespace {

/// Reflections that make a block; fewer are applied one by one.
constexpr Index block_size = 48;

/// X = (I - tau v v') X for v = [1, below].
void reflect(const double* below, double tau, ColumnsRef X) {
  const Index n = X.rows() - 1;
  const ConstVectorMap v(below, n);
  for (Index j = 0; j < X.cols(); ++j) {
    double* x = X.col(j).data();
    VectorMap rest(x + 1, n);
    const double length = tau * (x[0] + v.dot(rest));
    x[0] -= length;
    rest -= length * v;
  }
}

/// X = (I - V T V') X, or with T' for the transpose, where I - V T V' is the product of the reflections.
void reflect_by_block(const ConstColumnsRef& reflections, const ConstVectorRef& coefficients, bool transpose,
                      ColumnsRef X) {
  const Columns V = reflections.triangularView<Eigen::UnitLower>();
  const auto gram = product<Columns>(V.transpose(), V);
  const Index k = V.cols();
  Columns T = Columns::Zero(k, k);
  for (Index i = 0; i < k; ++i) {
    T(i, i) = coefficients(i);
    for (Index c = 0; c < i; ++c) T.col(i).head(c + 1) -= coefficients(i) * gram(c, i) * T.col(c).head(c + 1);
  }
  const auto lengths = product<Columns>(V.transpose(), X);
  if (transpose) T.transposeInPlace();
  add_product(V, product<Columns>(T, lengths), X, -1.0);
}

/// X = Q X, or Q'X: the last reflection of Q comes first, or last.
void apply(const ConstColumnsRef& reflections, const ConstVectorRef& coefficients, bool transpose, ColumnsRef X) {
  const Index size = coefficients.size();
  const Index step = size < block_size || X.cols() == 1 ? 1 : block_size;
  const Index blocks = (size + step - 1) / step;
  for (Index i = 0; i < blocks; ++i) {
    const Index k = (transpose ? i : blocks - 1 - i) * step;
    const Index rows = X.rows() - k;
    if (step == 1) {
      reflect(reflections.col(k).data() + k + 1, coefficients(k), X.bottomRows(rows));
    } else {
      const Index count = std::min(step, size - k);
      reflect_by_block(reflections.block(k, k, rows, count), coefficients.segment(k, count), transpose,
                       X.bottomRows(rows));
    }
  }
}

}  // namespace

Vector qr(ColumnsRef A) {
  const Index size = std::min(A.rows(), A.cols());
  Vector coefficients(size);
  for (Index begin = 0; begin < size; begin += block_size) {
    const Index end = std::min(begin + block_size, size);
    for (Index k = begin; k < end; ++k) {
      double length = 0.0;
      A.col(k).tail(A.rows() - k).makeHouseholderInPlace(coefficients(k), length);
      A(k, k) = length;
      reflect(A.col(k).data() + k + 1, coefficients(k), A.block(k, k + 1, A.rows() - k, end - k - 1));
    }
    if (end == A.cols()) break;
    reflect_by_block(A.block(begin, begin, A.rows() - begin, end - begin), coefficients.segment(begin, end - begin),
                     true, A.block(begin, end, A.rows() - begin, A.cols() - end));
  }
  return coefficients;
}

Vector pivoted_qr(ColumnsRef A) { return Eigen::ColPivHouseholderQR<ColumnsRef>(A).hCoeffs(); }

// NOLINTNEXTLINE(performance-unnecessary-value-param): X is written to
void apply_q(const ConstColumnsRef& reflections, const ConstVectorRef& coefficients, ColumnsRef X) {
  apply(reflections, coefficients, false, X);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): X is written to
void apply_q_transposed(const ConstColumnsRef& reflections, const ConstVectorRef& coefficients, ColumnsRef X) {
  apply(reflections, coefficients, true, X);
}

}  // namespace halosvm::linalg
