/// \file
/// What the moments of correlated covariances share.
#pragma once

#include "kernel/batch.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace halosvm::kernels {

using Eigen::MatrixXd;

/// A Gaussian with its covariance in parts, diag(v) + F F' + matrix.
struct Parts {
  Vector mean;
  Vector v;
  MatrixXd F;
  MatrixXd matrix;  ///< 0 x 0 unless covariances are full

  void load(const Block& block, Index i);
  /// Makes the matrix a factor, of as many columns as it has directions that are not rounding.
  void factor_matrix();
};

/// log |I + change|, relatively accurate for a small change, which is overwritten: pivots are kept less 1. Without a
/// value where one of them is far from 1, so that rows would have to be exchanged.
std::optional<double> log_near_identity(MatrixXd& change);

/// A quadratic form that rounding may have made negative, or an overflow NaN: it is infinite then.
inline double not_negative(double quadratic) { return std::isnan(quadratic) ? infinity : std::max(0.0, quadratic); }

}  // namespace halosvm::kernels
