/// \file
/// S_i = t_i I: one variance for each example.
#pragma once

#include "halosvm/gaussians/covariances.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// The same error in every direction, of another size for each example.
class IsotropicCovariances final : public Covariances, public Factors {
 public:
  /// \param variances n_samples x 1; a squared view holds standard deviations.
  IsotropicCovariances(const ArrayView& variances, Index n_features);

  const char* kind() const override { return "isotropic"; }
  /// The t_i, n_samples x 1.
  const ArrayView& variances() const { return variances_; }
  bool certain() const override { return false; }
  Index row_bytes() const override { return variances_.row_bytes(); }
  Index scratch_size(const BlockShape& shape) const override { return shape.rows; }
  void bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                double* scratch) const override;
  void add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W, MatrixRef sum,
                             double* scratch) const override;
  void products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const override;
  void add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum, double* scratch) const override;
  void add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum, double* scratch) const override;
  std::shared_ptr<const Covariances> in_basis(Index n_features) const override {
    return std::make_shared<IsotropicCovariances>(variances_, n_features);
  }
  void prefetch(Index row) const override { variances_.prefetch(row); }
  void check(const std::string& argument, const Execution& execution) const override;

  /// F_i = sqrt(t_i) I.
  const Factors* factors() const override { return this; }
  Index rank(Index /*row*/) const override { return n_features(); }
  Index first_column(Index row) const override { return row * n_features(); }
  void project(const Rows& rows, const ConstVectorRef& w, VectorRef p, double* scratch) const override;
  void combine(const Rows& rows, const ConstVectorRef& v, MatrixRef out, double* scratch) const override;
  void add_combined(const Rows& rows, const ConstVectorRef& a, const ConstVectorRef& v, VectorRef sum,
                    double* scratch) const override;
  void add_squares(const Rows& rows, const ConstVectorRef& t, MatrixRef sum, double* scratch) const override;

 private:
  ArrayView variances_;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
