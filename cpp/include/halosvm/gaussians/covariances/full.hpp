/// \file
/// S_i: a symmetric matrix for each example.
#pragma once

#include "halosvm/gaussians/covariances.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Any covariance matrices, n_features^2 numbers for each example.
class FullCovariances final : public Covariances {
 public:
  /// \param matrices (n_samples n_features) x n_features: S_i is rows i n_features ... of it.
  FullCovariances(const ArrayView& matrices, Index n_samples);

  const char* kind() const override { return "full"; }
  /// Relative rounding error of the stored numbers.
  double precision() const { return matrices_.precision(); }
  /// The matrices one below another, as given.
  const ArrayView& matrices() const { return matrices_; }
  bool certain() const override { return false; }
  bool cancels() const override { return true; }
  Index row_bytes() const override { return matrices_.row_bytes() * n_features(); }
  Index scratch_size(const BlockShape& shape) const override;
  void bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                double* scratch) const override;
  void add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W, MatrixRef sum,
                             double* scratch) const override;
  void squares(const Rows& rows, const ConstMatrixRef& W, MatrixRef out, double* kept, double* scratch) const override;
  Index kept_size(const BlockShape& shape) const override;
  void add_kept_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W, const double* kept,
                         MatrixRef sum, double* scratch) const override;
  void products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const override;
  void add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum, double* scratch) const override;
  void add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum, double* scratch) const override;
  void root(Index row, Matrix& out) const override;
  void prefetch(Index row) const override { matrices_.prefetch(row * n_features()); }
  /// Also throws when a matrix is not symmetric, or has a negative eigenvalue, beyond max(1e-8, 4 n_features times the
  /// relative precision of the storage) times its largest entry.
  void check(const std::string& argument, const Execution& execution) const override;

 private:
  /// S_row w_k for all k, in strips of columns, each a matrix of its own; numbers of all: W.size().
  void multiply(Index row, const ConstMatrixRef& W, double* out, double* scratch) const;
  /// Calls use(k, begin, strip of S_row w_k) for all of these products.
  template <class Use>
  void for_strips(const double* products, Index n_problems, const Use& use) const;

  ArrayView matrices_;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
