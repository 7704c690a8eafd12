// S_i = diag(d_i): S w and w' S v from the variances.

#include "halosvm/gaussians/covariances/diagonal.hpp"

namespace halosvm {

DiagonalCovariances::DiagonalCovariances(const ArrayView& variances)
    : Covariances(variances.rows(), variances.cols()), variances_(variances) {}

Index DiagonalCovariances::scratch_size(const BlockShape& shape) const {
  return (shape.rows + shape.problems) * n_features();
}

void DiagonalCovariances::bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                                   double* scratch) const {
  MatrixMap products(scratch, W.rows(), n_features());
  products = W.cwiseProduct(V);
  variances_.multiply(rows, products, out, scratch + products.size());
}

void DiagonalCovariances::add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W,
                                                MatrixRef sum, double* scratch) const {
  MatrixMap totals(scratch, W.rows(), n_features());
  totals.setZero();
  variances_.add_weighted_rows(rows, a, totals, scratch + totals.size());
  sum += totals.cwiseProduct(W);
}

void DiagonalCovariances::products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const {
  out = variances_.block(rows, scratch).array().rowwise() * w.transpose().array();
}

void DiagonalCovariances::add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum,
                                                double* scratch) const {
  VectorMap total(scratch, n_features());
  total.noalias() = variances_.block(rows, scratch + n_features()).transpose() * a;
  sum.diagonal() += total;
}

void DiagonalCovariances::add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum,
                                                 double* scratch) const {
  MatrixMap total(sum.data(), 1, n_features());
  variances_.add_weighted_rows(rows, a.transpose(), total, scratch);
}

void DiagonalCovariances::project(const Rows& rows, const ConstVectorRef& w, VectorRef p, double* scratch) const {
  MatrixMap out(p.data(), rows.count, n_features());
  out = variances_.block(rows, scratch).array().sqrt().rowwise() * w.transpose().array();
}

void DiagonalCovariances::combine(const Rows& rows, const ConstVectorRef& v, MatrixRef out, double* scratch) const {
  const ConstMatrixMap factors(v.data(), rows.count, n_features());
  out = variances_.block(rows, scratch).array().sqrt() * factors.array();
}

void DiagonalCovariances::add_combined(const Rows& rows, const ConstVectorRef& a, const ConstVectorRef& v,
                                       VectorRef sum, double* scratch) const {
  const ConstMatrixMap variances = variances_.block(rows, scratch);
  const ConstMatrixMap factors(v.data(), rows.count, n_features());
  for (Index i = 0; i < rows.count; ++i) {
    if (a(i) != 0.0) sum += a(i) * (variances.row(i).array().sqrt() * factors.row(i).array()).matrix().transpose();
  }
}

void DiagonalCovariances::add_squares(const Rows& rows, const ConstVectorRef& t, MatrixRef sum, double* scratch) const {
  const ConstMatrixMap variances = variances_.block(rows, scratch);
  const ConstMatrixMap weights(t.data(), rows.count, n_features());
  for (Index i = 0; i < rows.count; ++i) {
    sum.diagonal() += variances.row(i).cwiseProduct(weights.row(i)).transpose();
  }
}

void DiagonalCovariances::check(const std::string& argument, const Execution& execution) const {
  variances_.check(argument, 0.0, "it must be >= 0 and finite", execution);
}

}  // namespace halosvm
