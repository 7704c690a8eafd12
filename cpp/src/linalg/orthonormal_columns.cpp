// Orthonormal bases of the span of columns, by Cholesky or by reflections.

#include "linalg/orthonormal_columns.hpp"

#include "linalg/cholesky.hpp"
#include "linalg/qr.hpp"

#include <random>

namespace halosvm::linalg {

bool orthonormalise_by_cholesky(Columns& columns, Columns& triangle) {
  const Index k = columns.cols();
  triangle.setZero(k, k);
  triangle.selfadjointView<Eigen::Lower>().rankUpdate(columns.transpose());
  const bool definite = cholesky(triangle);
  const Vector lengths = triangle.diagonal();
  if (!definite || !(lengths.minCoeff() > 1e-5 * lengths.maxCoeff())) return false;
  triangle = triangle.triangularView<Eigen::Lower>().transpose().toDenseMatrix();
  triangle.triangularView<Eigen::Upper>().solveInPlace<Eigen::OnTheRight>(columns);
  return true;
}

void orthonormalise_by_reflections(Columns& columns, Columns& triangle) {
  const Index k = columns.cols();
  const Vector coefficients = qr(columns);
  triangle = columns.topRows(k).triangularView<Eigen::Upper>();
  Columns basis = Columns::Identity(columns.rows(), k);
  apply_q(columns, coefficients, basis);
  columns.swap(basis);
}

void fill_at_random(VectorRef out) {
  std::mt19937_64 engine(20180401);  // NOLINT(bugprone-random-generator-seed,cert-msc32-c,cert-msc51-cpp): repeatable
  for (Index i = 0; i < out.size(); ++i) out(i) = static_cast<double>(engine() >> 11U) * 0x1p-52 - 1.0;
}

}  // namespace halosvm::linalg
