/// \file
/// Other covariances times one factor.
#pragma once

#include "halosvm/gaussians/covariances.hpp"

#include <memory>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// The covariances factor S_i, of the kind of the S_i; nothing is copied.
class ScaledCovariances final : public Covariances {
 public:
  /// \param base the covariances. \param factor >= 0.
  ScaledCovariances(std::shared_ptr<const Covariances> base, double factor);

  const char* kind() const override { return base_->kind(); }
  double spread_norm() const override { return base_->spread_norm(); }
  bool certain() const override { return base_->certain(); }
  bool cancels() const override { return base_->cancels(); }
  Index row_bytes() const override { return base_->row_bytes(); }
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
  bool add_support(const Rows& rows, std::vector<Index>& columns) const override {
    return base_->add_support(rows, columns);
  }
  void root(Index row, Matrix& out) const override;
  void prefetch(Index row) const override { base_->prefetch(row); }
  void check(const std::string& argument, const Execution& execution) const override {
    base_->check_once(argument, execution);
  }

 private:
  std::shared_ptr<const Covariances> base_;
  double factor_;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
