/// \file
/// Bumps exp(-|x - z|^2 / 2) integrated over Gaussians, on dense matrices.
#pragma once

#include "halosvm/core/types.hpp"

#include <vector>

namespace oracle {

using halosvm::Index;
using halosvm::Matrix;
using halosvm::Vector;

/// (2 pi)^(k/2) times the density of N(0, C) at D.
double bump(Matrix C, Vector D);

/// Means of the bumps h_j around z_j ~ N(centres_j, T_j) at x ~ N(mean, S), and of their products.
struct BumpMoments {
  BumpMoments(const Vector& mean, const Matrix& S, const Matrix& centres, const std::vector<Matrix>& T);

  Vector first;       ///< E h_j
  Matrix covariance;  ///< E h_j h_l - E h_j E h_l
};

}  // namespace oracle
