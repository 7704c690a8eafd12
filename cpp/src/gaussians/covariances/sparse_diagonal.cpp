// S_i = diag(d_i) of few values: S w, w' S v and factors from the variances that are stored.

#include "halosvm/gaussians/covariances/sparse_diagonal.hpp"

#include <cmath>

namespace halosvm {

SparseDiagonalCovariances::SparseDiagonalCovariances(const SparseView& variances)
    : Covariances(variances.rows(), variances.cols()), variances_(variances) {}

/// Calls use(i, j, value, column of F_i's vectors from the first row on) for all that the rows store; the value is the
/// variance, or its root in a squared view.
template <class Use>
void SparseDiagonalCovariances::for_each(const Rows& rows, const Use& use) const {
  variances_.as_stored([&](const auto* values, const auto* columns, const auto* offsets) {
    Index place = 0;
    for (Index i = 0; i < rows.count; ++i) {
      for (auto at = static_cast<Index>(offsets[rows[i]]); at < static_cast<Index>(offsets[rows[i] + 1]); ++at) {
        use(i, static_cast<Index>(columns[at]), static_cast<double>(values[at]), place++);
      }
    }
  });
}

void SparseDiagonalCovariances::bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V,
                                         MatrixRef out, double* /*scratch*/) const {
  out.setZero();
  const bool squared = variances_.squared();
  for_each(rows, [&](Index i, Index j, double value, Index) {
    const double variance = squared ? value * value : value;
    for (Index k = 0; k < W.rows(); ++k) out(k, i) += variance * W(k, j) * V(k, j);
  });
}

void SparseDiagonalCovariances::add_weighted_products(const Rows& rows, const ConstMatrixRef& a,
                                                      const ConstMatrixRef& W, MatrixRef sum,
                                                      double* /*scratch*/) const {
  const bool squared = variances_.squared();
  for_each(rows, [&](Index i, Index j, double value, Index) {
    const double variance = squared ? value * value : value;
    for (Index k = 0; k < W.rows(); ++k) sum(k, j) += a(k, i) * variance * W(k, j);
  });
}

void SparseDiagonalCovariances::products(const Rows& rows, const ConstVectorRef& w, MatrixRef out,
                                         double* /*scratch*/) const {
  out.setZero();
  const bool squared = variances_.squared();
  for_each(rows, [&](Index i, Index j, double value, Index) { out(i, j) = (squared ? value * value : value) * w(j); });
}

void SparseDiagonalCovariances::add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum,
                                                      double* /*scratch*/) const {
  const bool squared = variances_.squared();
  for_each(rows, [&](Index i, Index j, double value, Index) { sum(j, j) += a(i) * (squared ? value * value : value); });
}

void SparseDiagonalCovariances::add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum,
                                                       double* /*scratch*/) const {
  const bool squared = variances_.squared();
  for_each(rows, [&](Index i, Index j, double value, Index) { sum(j) += a(i) * (squared ? value * value : value); });
}

bool SparseDiagonalCovariances::add_support(const Rows& rows, std::vector<Index>& columns) const {
  for_each(rows, [&](Index, Index j, double, Index) { columns.push_back(j); });
  return true;
}

void SparseDiagonalCovariances::project(const Rows& rows, const ConstVectorRef& w, VectorRef p,
                                        double* /*scratch*/) const {
  const bool squared = variances_.squared();
  for_each(rows, [&](Index, Index j, double value, Index at) { p(at) = (squared ? value : std::sqrt(value)) * w(j); });
}

void SparseDiagonalCovariances::combine(const Rows& rows, const ConstVectorRef& v, MatrixRef out,
                                        double* /*scratch*/) const {
  out.setZero();
  const bool squared = variances_.squared();
  for_each(rows,
           [&](Index i, Index j, double value, Index at) { out(i, j) = (squared ? value : std::sqrt(value)) * v(at); });
}

void SparseDiagonalCovariances::add_combined(const Rows& rows, const ConstVectorRef& a, const ConstVectorRef& v,
                                             VectorRef sum, double* /*scratch*/) const {
  const bool squared = variances_.squared();
  for_each(rows, [&](Index i, Index j, double value, Index at) {
    if (a(i) != 0.0) sum(j) += a(i) * (squared ? value : std::sqrt(value)) * v(at);
  });
}

void SparseDiagonalCovariances::add_squares(const Rows& rows, const ConstVectorRef& t, MatrixRef sum,
                                            double* /*scratch*/) const {
  const bool squared = variances_.squared();
  for_each(rows,
           [&](Index, Index j, double value, Index at) { sum(j, j) += t(at) * (squared ? value * value : value); });
}

void SparseDiagonalCovariances::check(const std::string& argument, const Execution& execution) const {
  variances_.check(argument, 0.0, "it must be >= 0 and finite", execution);
}

}  // namespace halosvm
