/// \file
/// Matrix products behind plain functions: each that a file asks Eigen for itself costs it half a second to compile.
#pragma once

#include "linalg/columns.hpp"

namespace halosvm::linalg {

/// A factor of a product: any matrix or vector, block or transpose of one, whose rows or columns are contiguous. It is
/// read where it is, and must live as long.
class Factor {
 public:
  template <class Derived>
  Factor(const Eigen::DenseBase<Derived>& A)  // NOLINT(google-explicit-constructor): every matrix is one
      : data(A.derived().data()),
        rows(A.rows()),
        cols(A.cols()),
        stride(A.derived().outerStride()),
        by_rows(bool(Derived::IsRowMajor)) {
    static_assert(int(Derived::InnerStrideAtCompileTime) == 1, "neither rows nor columns are contiguous");
  }

  const double* data;
  Index rows;
  Index cols;
  Index stride;
  bool by_rows;
};

/// What a product is added to or written to: as above, and none of the factors.
class Sum {
 public:
  template <class Derived>
  Sum(Eigen::DenseBase<Derived>& out)  // NOLINT(google-explicit-constructor)
      : data(out.derived().data()),
        rows(out.rows()),
        cols(out.cols()),
        stride(out.derived().outerStride()),
        by_rows(bool(Derived::IsRowMajor)) {
    static_assert(int(Derived::InnerStrideAtCompileTime) == 1, "neither rows nor columns are contiguous");
  }
  template <class Derived>
  Sum(Eigen::DenseBase<Derived>&& out) : Sum(out) {}  // NOLINT: a block is a temporary that stands for its matrix

  double* data;
  Index rows;
  Index cols;
  Index stride;
  bool by_rows;
};

/// out += scale A B.
void add_product(const Factor& A, const Factor& B, const Sum& out, double scale = 1.0);

/// out += scale A B for few columns of A: without packing, which would cost more than the product.
void add_thin_product(const Factor& A, const Factor& B, const Sum& out, double scale = 1.0);

/// The lower triangle of out += scale Z'Z.
void add_gram(const ConstMatrixRef& Z, MatrixRef out, double scale = 1.0);

/// out = A B, of its shape.
template <class Plain>
void multiply(const Factor& A, const Factor& B, Eigen::PlainObjectBase<Plain>& out) {
  out.derived().setZero(A.rows, B.cols);
  add_product(A, B, out.derived());
}

/// out = A B, for a part of a matrix.
inline void multiply(const Factor& A, const Factor& B, MatrixRef out) {
  out.setZero();
  add_product(A, B, out);
}

/// A B.
template <class Plain = Matrix>
Plain product(const Factor& A, const Factor& B) {
  Plain out;
  multiply(A, B, out);
  return out;
}

}  // namespace halosvm::linalg
