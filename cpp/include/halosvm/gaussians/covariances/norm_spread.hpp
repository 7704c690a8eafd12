/// \file
/// Bounded errors F_i u, |u|_p <= 1, with p other than 2, in place of covariances F_i F_i'.
#pragma once

#include "halosvm/gaussians/covariances.hpp"

#include <memory>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Spreads |F_i'w|_q. F_i are the factors of other covariances, next to the roots of their diagonals if they have both.
class NormSpread final : public Covariances, public Factors {
 public:
  /// \param base covariances with factors. \param norm p >= 1, infinity included.
  /// \throws std::invalid_argument for covariances without factors.
  NormSpread(std::shared_ptr<const Covariances> base, double norm);

  const char* kind() const override { return base_->kind(); }
  double spread_norm() const override { return q_; }
  bool certain() const override { return base_->certain(); }
  Index row_bytes() const override { return base_->row_bytes(); }
  Index scratch_size(const BlockShape& shape) const override;
  void bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                double* scratch) const override;
  void add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W, MatrixRef sum,
                             double* scratch) const override;
  void products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const override;
  /// Of F_i F_i'.
  void add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum, double* scratch) const override {
    base_->add_weighted_matrices(rows, a, sum, scratch);
  }
  /// Of squares that the entries of F_i v are not above, |v|_p <= 1.
  void add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum, double* scratch) const override;
  bool add_support(const Rows& rows, std::vector<Index>& columns) const override {
    return base_->add_support(rows, columns);
  }
  void prefetch(Index row) const override { base_->prefetch(row); }
  void check(const std::string& argument, const Execution& execution) const override {
    base_->check_once(argument, execution);
  }

  const Factors* factors() const override { return this; }
  Index rank(Index row) const override { return first_->rank(row) + (second_ != nullptr ? second_->rank(row) : 0); }
  Index first_column(Index row) const override {
    return first_->first_column(row) + (second_ != nullptr ? second_->first_column(row) : 0);
  }
  void project(const Rows& rows, const ConstVectorRef& w, VectorRef p, double* scratch) const override;
  void combine(const Rows& rows, const ConstVectorRef& v, MatrixRef out, double* scratch) const override;
  void add_combined(const Rows& rows, const ConstVectorRef& a, const ConstVectorRef& v, VectorRef sum,
                    double* scratch) const override;
  void add_squares(const Rows& rows, const ConstVectorRef& t, MatrixRef sum, double* scratch) const override;

 private:
  std::shared_ptr<const Covariances> base_;
  double q_;
  const Factors* first_;
  const Factors* second_ = nullptr;  ///< of the diagonal beside a factor, or null
  Index largest_rank_ = 0;
  double excess_ = 1.0;  ///< by which diagonals are multiplied
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
