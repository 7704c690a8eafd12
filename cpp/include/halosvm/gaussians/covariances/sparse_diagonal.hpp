/// \file
/// S_i = diag(d_i), of which only some values are stored: the others are certain.
#pragma once

#include "halosvm/gaussians/covariances.hpp"
#include "halosvm/gaussians/sparse_view.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Independent errors of some values; work is for what is stored alone.
class SparseDiagonalCovariances final : public Covariances, public Factors {
 public:
  /// \param variances n_samples x n_features; a squared view holds standard deviations.
  explicit SparseDiagonalCovariances(const SparseView& variances);

  const char* kind() const override { return "sparse_diagonal"; }
  bool certain() const override { return false; }
  Index row_bytes() const override { return variances_.row_bytes(); }
  Index scratch_size(const BlockShape& /*shape*/) const override { return 0; }
  void bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                double* scratch) const override;
  void add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W, MatrixRef sum,
                             double* scratch) const override;
  void products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const override;
  void add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum, double* scratch) const override;
  void add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum, double* scratch) const override;
  bool add_support(const Rows& rows, std::vector<Index>& columns) const override;
  void prefetch(Index row) const override { variances_.prefetch(row); }
  void check(const std::string& argument, const Execution& execution) const override;

  /// F_i has a column for each value that is stored.
  const Factors* factors() const override { return this; }
  Index rank(Index row) const override { return variances_.offset(row + 1) - variances_.offset(row); }
  Index first_column(Index row) const override { return variances_.offset(row) - variances_.offset(0); }
  void project(const Rows& rows, const ConstVectorRef& w, VectorRef p, double* scratch) const override;
  void combine(const Rows& rows, const ConstVectorRef& v, MatrixRef out, double* scratch) const override;
  void add_combined(const Rows& rows, const ConstVectorRef& a, const ConstVectorRef& v, VectorRef sum,
                    double* scratch) const override;
  void add_squares(const Rows& rows, const ConstVectorRef& t, MatrixRef sum, double* scratch) const override;

 private:
  template <class Use>
  void for_each(const Rows& rows, const Use& use) const;

  SparseView variances_;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
