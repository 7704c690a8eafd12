// Matrix products: the one place that compiles Eigen's, for factors stored by rows or by columns.

#include "linalg/multiply.hpp"

#include <utility>

namespace halosvm::linalg {
namespace {

template <int order>
using Stored = Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, order>, Eigen::Unaligned,
                          Eigen::OuterStride<>>;
using ByColumns = Eigen::Map<Columns, Eigen::Unaligned, Eigen::OuterStride<>>;

Factor transposed(Factor A) {
  std::swap(A.rows, A.cols);
  A.by_rows = !A.by_rows;
  return A;
}

template <int order>
Stored<order> stored(const Factor& A) {
  return {A.data, A.rows, A.cols, Eigen::OuterStride<>(A.stride)};
}

/// Calls \p add with maps of the two.
template <class Add>
void with_stored(const Factor& A, const Factor& B, const Add& add) {
  if (A.by_rows && B.by_rows) {
    add(stored<Eigen::RowMajor>(A), stored<Eigen::RowMajor>(B));
  } else if (A.by_rows) {
    add(stored<Eigen::RowMajor>(A), stored<Eigen::ColMajor>(B));
  } else if (B.by_rows) {
    add(stored<Eigen::ColMajor>(A), stored<Eigen::RowMajor>(B));
  } else {
    add(stored<Eigen::ColMajor>(A), stored<Eigen::ColMajor>(B));
  }
}

/// A sum by rows is the transpose of B'A' by columns.
template <class Add>
void with_columns(const Factor& A, const Factor& B, const Sum& out, const Add& add) {
  const Eigen::OuterStride<> stride(out.stride);
  if (out.by_rows) {
    ByColumns to(out.data, out.cols, out.rows, stride);
    with_stored(transposed(B), transposed(A), [&](const auto& a, const auto& b) { add(a, b, to); });
  } else {
    ByColumns to(out.data, out.rows, out.cols, stride);
    with_stored(A, B, [&](const auto& a, const auto& b) { add(a, b, to); });
  }
}

}  // namespace

void add_product(const Factor& A, const Factor& B, const Sum& out, double scale) {
  with_columns(A, B, out, [&](const auto& a, const auto& b, ByColumns& to) { to.noalias() += (scale * a) * b; });
}

void add_thin_product(const Factor& A, const Factor& B, const Sum& out, double scale) {
  with_columns(A, B, out,
               [&](const auto& a, const auto& b, ByColumns& to) { to.noalias() += scale * a.lazyProduct(b); });
}

void add_gram(const ConstMatrixRef& Z, MatrixRef out, double scale) {
  out.selfadjointView<Eigen::Lower>().rankUpdate(Z.transpose(), scale);
}

}  // namespace halosvm::linalg
