// Other covariances times one factor: what those give comes in, scaled it goes out.

#include "halosvm/gaussians/covariances/scaled.hpp"

#include "halosvm/core/check.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halosvm {

ScaledCovariances::ScaledCovariances(std::shared_ptr<const Covariances> base, double factor)
    : Covariances(check::given(base, "covariances")->n_samples(), check::given(base, "covariances")->n_features()),
      base_(std::move(base)),
      factor_(factor) {
  check::not_negative("factor", factor);
}

Index ScaledCovariances::scratch_size(const BlockShape& shape) const {
  return shape.problems * std::max(n_features(), shape.rows) + base_->scratch_size(shape);
}

void ScaledCovariances::bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                                 double* scratch) const {
  base_->bilinear(rows, W, V, out, scratch);
  out *= factor_;
}

void ScaledCovariances::add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W,
                                              MatrixRef sum, double* scratch) const {
  MatrixMap scaled(scratch, W.rows(), n_features());
  scaled = factor_ * W;
  base_->add_weighted_products(rows, a, scaled, sum, scratch + scaled.size());
}

void ScaledCovariances::squares(const Rows& rows, const ConstMatrixRef& W, MatrixRef out, double* kept,
                                double* scratch) const {
  base_->squares(rows, W, out, kept, scratch);
  out *= factor_;
}

Index ScaledCovariances::kept_size(const BlockShape& shape) const { return base_->kept_size(shape); }

void ScaledCovariances::add_kept_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W,
                                          const double* kept, MatrixRef sum, double* scratch) const {
  MatrixMap scaled(scratch, a.rows(), rows.count);
  scaled = factor_ * a.leftCols(rows.count);
  base_->add_kept_products(rows, scaled, W, kept, sum, scratch + scaled.size());
}

void ScaledCovariances::products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const {
  base_->products(rows, w, out, scratch);
  out *= factor_;
}

void ScaledCovariances::add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum,
                                              double* scratch) const {
  VectorMap scaled(scratch, rows.count);
  scaled = factor_ * a;
  base_->add_weighted_matrices(rows, scaled, sum, scratch + scaled.size());
}

void ScaledCovariances::add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum,
                                               double* scratch) const {
  VectorMap scaled(scratch, rows.count);
  scaled = factor_ * a;
  base_->add_weighted_diagonals(rows, scaled, sum, scratch + scaled.size());
}

void ScaledCovariances::root(Index row, Matrix& out) const {
  base_->root(row, out);
  out *= std::sqrt(factor_);
}

}  // namespace halosvm
