// S_i = t_i I: S w and w' S v from one number an example.

#include "halosvm/gaussians/covariances/isotropic.hpp"

#include "halosvm/core/check.hpp"

namespace halosvm {

IsotropicCovariances::IsotropicCovariances(const ArrayView& variances, Index n_features)
    : Covariances(variances.rows(), n_features), variances_(variances) {
  check::require(variances.cols() == 1, "variances", "must have one value for each example");
}

void IsotropicCovariances::bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                                    double* scratch) const {
  const ConstVectorMap t(variances_.block(rows, scratch).data(), rows.count);
  for (Index k = 0; k < W.rows(); ++k) out.row(k).noalias() = W.row(k).dot(V.row(k)) * t.transpose();
}

void IsotropicCovariances::add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W,
                                                 MatrixRef sum, double* scratch) const {
  const ConstVectorMap t(variances_.block(rows, scratch).data(), rows.count);
  for (Index k = 0; k < W.rows(); ++k) sum.row(k) += a.row(k).dot(t.transpose()) * W.row(k);
}

void IsotropicCovariances::products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const {
  const ConstVectorMap t(variances_.block(rows, scratch).data(), rows.count);
  out.noalias() = t * w.transpose();
}

void IsotropicCovariances::add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum,
                                                 double* scratch) const {
  const ConstVectorMap t(variances_.block(rows, scratch).data(), rows.count);
  sum.diagonal().array() += a.dot(t);
}

void IsotropicCovariances::add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum,
                                                  double* scratch) const {
  sum.array() += a.dot(ConstVectorMap(variances_.block(rows, scratch).data(), rows.count));
}

void IsotropicCovariances::project(const Rows& rows, const ConstVectorRef& w, VectorRef p, double* scratch) const {
  const ConstVectorMap t(variances_.block(rows, scratch).data(), rows.count);
  MatrixMap(p.data(), rows.count, n_features()).noalias() = t.cwiseSqrt() * w.transpose();
}

void IsotropicCovariances::combine(const Rows& rows, const ConstVectorRef& v, MatrixRef out, double* scratch) const {
  const ConstVectorMap t(variances_.block(rows, scratch).data(), rows.count);
  out = ConstMatrixMap(v.data(), rows.count, n_features()).array().colwise() * t.array().sqrt();
}

void IsotropicCovariances::add_combined(const Rows& rows, const ConstVectorRef& a, const ConstVectorRef& v,
                                        VectorRef sum, double* scratch) const {
  const ConstVectorMap t(variances_.block(rows, scratch).data(), rows.count);
  sum.noalias() += ConstMatrixMap(v.data(), rows.count, n_features()).transpose() * a.cwiseProduct(t.cwiseSqrt());
}

void IsotropicCovariances::add_squares(const Rows& rows, const ConstVectorRef& t, MatrixRef sum,
                                       double* scratch) const {
  const ConstVectorMap variances(variances_.block(rows, scratch).data(), rows.count);
  sum.diagonal().noalias() += ConstMatrixMap(t.data(), rows.count, n_features()).transpose() * variances;
}

void IsotropicCovariances::check(const std::string& argument, const Execution& execution) const {
  const Index at = variances_.first_refused(0.0, execution);
  if (at >= 0) variances_.refuse(argument, at, at, -1, "it must be >= 0 and finite");
}

}  // namespace halosvm
