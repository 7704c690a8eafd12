/// \file
/// Second moments of kernel sections h_j(x) = E k(x, Z_j), pair by pair, for a Gaussian x and the rbf kernel in units
/// of its bandwidth.
///
/// With d_j = mu - z_j, B_j = I + S + T_j for x ~ N(mu, S) and Z_j ~ N(z_j, T_j), and a_j = B_j^-1 d_j,
///
///     log E h_j h_l - log E h_j - log E h_l = first + rest,     first = a_j'S a_l,     rest = 1/2 (lambda - rho),
///     lambda = -log |I - B_j^-1 S B_l^-1 S|,    rho = y'C^-1 y,    y = [S a_l; S a_j],    C = [B_j S; S B_l].
///
/// first is linear in S and a product of a_j and a_l, so that a sum over all pairs is g'S g with one vector g; lambda
/// and rho are of second order, are not negative, and are computed without taking differences of larger numbers.
/// However small S is, a variance keeps its digits.
#pragma once

#include "kernel/batch.hpp"

#include <memory>

namespace halosvm::kernels {

/// Of the pairs of two strips of the Z_j.
struct PairTile {
  Vector row_exponents;     ///< -log E h_j(x)
  Vector column_exponents;  ///< -log E h_l(x)
  Matrix first;             ///< rows x columns
  Matrix rest;
};

/// Owns the memory it works in, hence one for each thread.
class PairMoments {
 public:
  virtual ~PairMoments() = default;
  /// Rows and columns of a tile.
  virtual Index strip_rows() const = 0;
  /// Turns to another x, one row.
  virtual void load(const Block& x) = 0;
  /// Resizes and fills a tile. Meets the checkpoint every few milliseconds.
  virtual void fill(const Rows& rows, const Rows& columns, PairTile& out, Checkpoint& checkpoint) = 0;
  /// gradients += weights a for the a_j of the rows of the last tile; weights: n_problems x rows.
  virtual void add_gradients(const Matrix& weights, Matrix& gradients) const = 0;
  /// g'S g.
  virtual double spread(const Vector& g) const = 0;
};

/// The cheapest way for the covariances of two batches; \p all holds all of \p z if \ref diagonal_moments.
std::unique_ptr<PairMoments> make_moments(const Side& x, const Side& z, const Block& all);

/// Whether all covariances are zero, isotropic or diagonal.
bool diagonal_moments(const Side& x, const Side& z);
std::unique_ptr<PairMoments> make_diagonal_moments(const Side& x, const Side& z, const Block& all);

/// In the latent variables of x, r of them: O(r^3) for each pair. r is the rank of x without a diagonal part, else the
/// number of features.
std::unique_ptr<PairMoments> make_latent_moments(const Side& z);

/// Diagonals and factors: O(d r^2 + r^3) for each pair, r being the ranks of x, twice, and of both Z.
std::unique_ptr<PairMoments> make_factor_moments(const Side& z);

}  // namespace halosvm::kernels
