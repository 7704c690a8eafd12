// Negative parts: a symmetric matrix comes in, directions in which it is negative go out.

#include "linalg/negative_part.hpp"

#include "core/double_double.hpp"
#include "linalg/cholesky.hpp"
#include "linalg/eigen.hpp"

#include <cmath>
#include <vector>

namespace halosvm::linalg {
namespace {

/// Q'R Q for few columns Q, of entries that are rounding errors of R's.
Columns projected(const Columns& R, const ConstColumnsRef& Q) {
  const Index d = R.rows();
  Columns out(Q.cols(), Q.cols());
  std::vector<DoubleDouble> product(static_cast<std::size_t>(d));
  for (Index k = 0; k < Q.cols(); ++k) {
    for (Index i = 0; i < d; ++i) {
      DoubleDouble sum;
      for (Index j = 0; j < d; ++j) sum.add_product(R(i, j), Q(j, k));
      product[static_cast<std::size_t>(i)] = sum;
    }
    for (Index l = 0; l < Q.cols(); ++l) {
      DoubleDouble sum;
      for (Index i = 0; i < d; ++i) sum.add_product(Q(i, l), product[static_cast<std::size_t>(i)]);
      out(l, k) = sum.value();
    }
  }
  return out;
}

}  // namespace

/// Features are scaled by powers of two to deviations near 1, exactly. The eigenvectors of eigenvalues near 0 and below
/// span what N lives in, but for rounding that enters N in second order.
void NegativePart::compute(const ConstMatrixRef& S) {
  const Index d = S.rows();
  const double near_zero = 0x1p-48 * static_cast<double>(d);
  constexpr double nothing = 0x1p-96;  // what rounding leaves of 0 with twice the digits
  directions_.resize(d, 0);
  const Vector unit =
      S.diagonal().unaryExpr([](double v) { return v > 0.0 ? std::ldexp(1.0, -std::ilogb(v) / 2) : 1.0; });
  const Columns R = unit.asDiagonal() * S * unit.asDiagonal();
  Columns definite = R;
  definite.diagonal().array() -= near_zero;
  if (cholesky(definite)) return;

  SymmetricEigen eigen;
  eigen.compute(R);
  const Index few = (eigen.values().array() < near_zero).count();
  if (few == 0) return;
  const Columns Q = eigen.vectors().leftCols(few);
  eigen.compute(projected(R, Q));
  const Index negative = (eigen.values().array() < -nothing).count();
  if (negative == 0) return;
  const Vector sizes = (-eigen.values().head(negative)).cwiseSqrt();
  directions_ = unit.cwiseInverse().asDiagonal() * (Q * eigen.vectors().leftCols(negative)) * sizes.asDiagonal();
}

}  // namespace halosvm::linalg
