/// \file
/// S_i = F_i F_i' + diag(d_i): a factor of r_i columns for each example, the diagonal optional.
#pragma once

#include "halosvm/gaussians/covariances.hpp"
#include "halosvm/gaussians/covariances/diagonal.hpp"

#include <optional>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Errors along few directions, and independent ones besides if there is a diagonal.
class LowRankCovariances final : public Covariances, public Factors {
 public:
  /// One rank for all. \param factors (n_samples n_features) x rank: F_i is rows i n_features ... of it.
  LowRankCovariances(const ArrayView& factors, Index n_samples, Index n_features, const ArrayView& diagonal = {});

  /// A rank for each example. \param factors the F_i one after another, each n_features x r_i row-major, as one row.
  /// \param offsets n_samples + 1 cumulative ranks from 0, which must outlive this object.
  LowRankCovariances(const ArrayView& factors, const Index* offsets, Index n_samples, Index n_features,
                     const ArrayView& diagonal = {});

  const char* kind() const override { return "low_rank"; }
  bool certain() const override { return largest_rank_ == 0 && !diagonal_; }
  Index row_bytes() const override;
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
  void prefetch(Index row) const override;
  void check(const std::string& argument, const Execution& execution) const override;

  /// The largest r_i.
  Index largest_rank() const { return largest_rank_; }
  /// The added diagonal, or nullptr.
  const DiagonalCovariances* diagonal() const { return diagonal_ ? &*diagonal_ : nullptr; }
  /// Resizes \p out to F_row, n_features x rank(row).
  void copy_factor(Index row, Matrix& out) const;

  void root(Index row, Matrix& out) const override;
  const Factors* factors() const override { return diagonal_ ? nullptr : this; }

  Index rank(Index row) const override {
    return offsets_ != nullptr ? offsets_[row + 1] - offsets_[row] : uniform_rank_;
  }
  Index first_column(Index row) const override { return offsets_ != nullptr ? offsets_[row] : row * uniform_rank_; }
  void project(const Rows& rows, const ConstVectorRef& w, VectorRef p, double* scratch) const override;
  void combine(const Rows& rows, const ConstVectorRef& v, MatrixRef out, double* scratch) const override;
  void add_combined(const Rows& rows, const ConstVectorRef& a, const ConstVectorRef& v, VectorRef sum,
                    double* scratch) const override;
  void add_squares(const Rows& rows, const ConstVectorRef& t, MatrixRef sum, double* scratch) const override;

 private:
  /// Factor rows [begin, begin + count) of example \p row.
  ConstMatrixMap factor(Index row, Index begin, Index count, double* scratch) const;
  /// p = F_row' w.
  void project_one(Index row, const ConstVectorRef& w, VectorRef p, double* scratch) const;
  /// sum += F_row v.
  void add_one(Index row, const ConstVectorRef& v, VectorRef sum, double* scratch) const;
  /// The p_i = F_i' w of all rows one after another, and sum += sum_i F_i p_i.
  void project_all(const Rows& rows, const ConstVectorRef& w, double* p, double* scratch) const;
  void add_all(const Rows& rows, const double* p, VectorRef sum, double* scratch) const;
  bool has_small_rank() const;
  void set_diagonal(const ArrayView& diagonal);

  ArrayView factors_;
  const Index* offsets_ = nullptr;
  Index uniform_rank_ = 0;
  Index largest_rank_ = 0;
  std::optional<DiagonalCovariances> diagonal_;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
