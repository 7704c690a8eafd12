/// \file
/// Cholesky factor of a positive definite matrix. Private to the batch solvers.
#pragma once

#include "halosvm/core/types.hpp"

#include "linalg/cholesky.hpp"

namespace halosvm {

/// The matrix is scaled to unit diagonal first.
class CholeskyFactor {
 public:
  /// \param lower its lower triangle is read. Rounding may ask for a little more diagonal; false when even that does
  /// not help.
  bool compute(const Matrix& lower) {
    scale_ = lower.diagonal().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
    double extra = 1e-15;
    for (int attempt = 0; attempt < 6; ++attempt) {
      cholesky_ = scale_.asDiagonal() * lower * scale_.asDiagonal();
      cholesky_.diagonal().array() += extra;
      if (linalg::cholesky(cholesky_)) return true;
      extra *= 100.0;
    }
    return false;
  }

  Vector solve(const Vector& right) const {
    Vector out = scale_.cwiseProduct(right);
    linalg::cholesky_solve(cholesky_, out);
    return scale_.cwiseProduct(out);
  }

 private:
  Vector scale_;
  Columns cholesky_;
};

}  // namespace halosvm
