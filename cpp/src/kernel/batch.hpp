/// \file
/// Rows of a batch of Gaussians, unpacked for a tile of a Gram matrix.
#pragma once

#include "halosvm/gaussians/covariances/diagonal.hpp"
#include "halosvm/gaussians/covariances/full.hpp"
#include "halosvm/gaussians/covariances/isotropic.hpp"
#include "halosvm/gaussians/covariances/low_rank.hpp"
#include "halosvm/gaussians/gaussians.hpp"

namespace halosvm::kernels {

/// A difference below this part of what it is taken from has lost too many digits: more than sixteen bits of 53.
inline constexpr double lost = 0x1p-16;

/// One of the two batches of a Gram matrix, and how its numbers are scaled.
class Side {
 public:
  /// \param scale factor of all features, or of each. \param centre is subtracted from the means before.
  Side(const Gaussians& data, const Vector& scale, const Vector& centre);

  const Gaussians& data() const { return data_; }
  const Vector& scale() const { return scale_; }
  const Vector& centre() const { return centre_; }
  const IsotropicCovariances* isotropic() const { return isotropic_; }
  const DiagonalCovariances* diagonal() const { return diagonal_; }
  const LowRankCovariances* low_rank() const { return low_rank_; }
  const FullCovariances* full() const { return full_; }

  /// All covariances are 0.
  bool certain() const;
  /// One variance for all features, once they are scaled, except for factors and matrices.
  bool uniform() const;
  /// Largest rank of the factors.
  Index rank() const;

 private:
  const Gaussians& data_;
  const Vector& scale_;
  const Vector& centre_;
  const IsotropicCovariances* isotropic_;
  const DiagonalCovariances* diagonal_;
  const LowRankCovariances* low_rank_;
  const FullCovariances* full_;
};

/// Scaled Gaussians of consecutive rows; S = diag(variance) + F F' + matrix. Rows beyond count, up to a multiple of
/// \ref lanes, are 0.
struct Block {
  Index begin = -1;
  Index count = 0;
  Index rank = 0;   ///< of all factors, shorter ones having columns of 0
  Matrix mean;      ///< padded(count) x d
  Vector norm;      ///< |mean|^2
  Matrix variance;  ///< padded(count) x d, or x 1 where it is the same for all features
  Matrix factor;    ///< (rank padded(count)) x d: row a padded(count) + i is column a of F_i
  Matrix matrix;    ///< (count d) x d

  bool uniform() const { return variance.cols() == 1; }
  void load(const Side& side, Index first, Index n_rows);

 private:
  void load_variances(const Side& side);
  void load_factors(const Side& side);
  void load_matrices(const Side& side);

  Matrix scratch_;
};

}  // namespace halosvm::kernels
