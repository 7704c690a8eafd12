/// \file
/// Roots of covariances as linear maps see them: W R for S = R R', and how far such a map can move a bounded input.
#pragma once

#include "halosvm/maps/features.hpp"
#include "kernel/batch.hpp"
#include "linalg/eigen.hpp"

namespace halosvm::maps {

/// Keeps its memory from one row to the next, hence one for each thread.
class Lift {
 public:
  explicit Lift(const kernels::Side& side);

  /// Columns of R; as \ref latent_rank.
  Index rank() const { return rank_; }
  bool has_variances() const { return has_variances_; }

  /// W R_i for row i of a block, as many rows as W has. Of a full matrix R is V sqrt(values), from its eigenvalues.
  const Matrix& of(const kernels::Block& block, Index i, const Matrix& W);

 private:
  const kernels::Side& side_;
  bool has_variances_;
  Index rank_;
  Matrix lifted_;
  Matrix root_;
  linalg::SymmetricEigen eigen_;
};

/// The largest singular value of a matrix, bounded from above.
class SpectralNorm {
 public:
  /// Whether its time, which grows with the cube of the smaller side, is what a row may take.
  static bool affordable(const Matrix& L);
  /// Within a relative 1e-12.
  double bound(const Matrix& L);
  /// In a time that grows with the square: the norm of L'L, whose ratio to the largest eigenvalue is at most the fourth
  /// root of the smaller side.
  double rough_bound(const Matrix& L);

 private:
  void multiply(const Matrix& L);

  Matrix turned_;
  Columns products_;
  linalg::SymmetricEigen eigen_;
};

/// max |l'u| over the ball |u|_p <= 1: the dual norm of a row.
double dual_norm(const Eigen::Ref<const Eigen::RowVectorXd>& l, double p);

/// The factor by which |u|_2 can exceed the radius of |u|_p in so many dimensions.
double euclidean_excess(double p, Index dimensions);

}  // namespace halosvm::maps
