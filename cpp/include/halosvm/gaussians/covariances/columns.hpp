/// \file
/// Covariances of any kind in a few of the features; in the others all examples are certain.
#pragma once

#include "halosvm/gaussians/covariances.hpp"

#include <memory>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// S_i = P' T_i P, where P picks the columns and T_i are the covariances of these: w' S w = w_c' T w_c.
class ColumnsCovariances final : public Covariances, public Factors {
 public:
  /// \param inner of the columns. \param columns all different, one for each feature of \p inner.
  /// \throws std::invalid_argument for columns that do not exist, or are there twice.
  ColumnsCovariances(std::shared_ptr<const Covariances> inner, std::vector<Index> columns, Index n_features);

  const char* kind() const override { return "columns"; }
  /// The T_i.
  const std::shared_ptr<const Covariances>& inner() const { return inner_; }
  /// The columns that they belong to.
  const std::vector<Index>& columns() const { return columns_; }
  double spread_norm() const override { return inner_->spread_norm(); }
  bool certain() const override { return inner_->certain(); }
  bool cancels() const override { return inner_->cancels(); }
  Index row_bytes() const override { return inner_->row_bytes(); }
  Index scratch_size(const BlockShape& shape) const override;
  void bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                double* scratch) const override;
  void add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W, MatrixRef sum,
                             double* scratch) const override;
  void squares(const Rows& rows, const ConstMatrixRef& W, MatrixRef out, double* kept, double* scratch) const override;
  Index kept_size(const BlockShape& shape) const override { return inner_->kept_size(shape); }
  void add_kept_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W, const double* kept,
                         MatrixRef sum, double* scratch) const override;
  void products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const override;
  void add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum, double* scratch) const override;
  void add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum, double* scratch) const override;
  bool add_support(const Rows& /*rows*/, std::vector<Index>& columns) const override {
    columns.insert(columns.end(), columns_.begin(), columns_.end());
    return true;
  }
  void root(Index row, Matrix& out) const override;
  void prefetch(Index row) const override { inner_->prefetch(row); }
  void check(const std::string& argument, const Execution& execution) const override {
    inner_->check_once(argument, execution);
  }

  const Factors* factors() const override { return inner_->factors() != nullptr ? this : nullptr; }
  Index rank(Index row) const override { return inner_->factors()->rank(row); }
  Index first_column(Index row) const override { return inner_->factors()->first_column(row); }
  void project(const Rows& rows, const ConstVectorRef& w, VectorRef p, double* scratch) const override;
  void combine(const Rows& rows, const ConstVectorRef& v, MatrixRef out, double* scratch) const override;
  void add_combined(const Rows& rows, const ConstVectorRef& a, const ConstVectorRef& v, VectorRef sum,
                    double* scratch) const override;
  void add_squares(const Rows& rows, const ConstVectorRef& t, MatrixRef sum, double* scratch) const override;

 private:
  Index size() const { return static_cast<Index>(columns_.size()); }
  /// Copies the entries of these features from weights of all, vectors or rows of a matrix.
  void gather(const ConstMatrixRef& W, MatrixRef out) const;
  void gather(const ConstVectorRef& w, VectorRef out) const;
  /// Adds the columns of \p part to theirs of \p sum.
  void add_back(const ConstMatrixRef& part, MatrixRef sum) const;
  /// Adds the lower triangle of a matrix of the columns to that of all features.
  void scatter(const MatrixMap& matrix, MatrixRef sum) const;

  std::shared_ptr<const Covariances> inner_;
  std::vector<Index> columns_;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
