/// \file
/// Cholesky factor of a positive definite matrix. Private to the batch solvers.
#pragma once

#include "halosvm/types.hpp"

#include <Eigen/Cholesky>

namespace halosvm {

/// The matrix is scaled to unit diagonal first.
class Factor {
 public:
  /// \param lower its lower triangle is read. Rounding may ask for a little more diagonal; false when even that does
  /// not help.
  bool compute(const Matrix& lower) {
    scale_ = lower.diagonal().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
    double extra = 1e-15;
    for (int attempt = 0; attempt < 6; ++attempt) {
      Matrix scaled = scale_.asDiagonal() * lower * scale_.asDiagonal();
      scaled.diagonal().array() += extra;
      llt_.compute(scaled);
      if (llt_.info() == Eigen::Success) return true;
      extra *= 100.0;
    }
    return false;
  }

  Vector solve(const Vector& right) const { return scale_.cwiseProduct(llt_.solve(scale_.cwiseProduct(right))); }

 private:
  Vector scale_;
  Eigen::LLT<Matrix, Eigen::Lower> llt_;
};

}  // namespace halosvm
