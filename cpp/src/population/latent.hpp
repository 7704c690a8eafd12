/// \file
/// The posterior of a block of rows with diagonal errors under one component L L' + diag(psi). Private to populations.
#pragma once

#include "population/measurements.hpp"
#include "population/symmetric.hpp"

namespace halosvm::population {

/// One component, and the products L_ja L_jb, a >= b, that every row weighs anew.
struct LatentComponent {
  LatentComponent(const Population& population, Index k);

  Vector mean;
  Vector variances;
  Matrix factors;   ///< d x h
  Matrix products;  ///< h (h + 1) / 2 x d
};

class LatentBlock {
 public:
  LatentBlock(Index d, Index h);

  /// Rows at positions begin ... begin + count - 1.
  void read(const Measurements::Prepared& data, Index begin, Index count);
  /// The rows that another block has read.
  void copy_rows(const LatentBlock& other) {
    measured = other.measured;
    there = other.there;
    errors = other.errors;
  }

  /// The posterior of all rows: what follows below. The first row where psi + S is 0, or the number of rows.
  Index condition(const LatentComponent& component);

  Matrix measured;  ///< x, 0 where missing
  Matrix there;     ///< 1 where a value is there, else 0
  Matrix errors;    ///< diagonals of S

  Matrix shift;       ///< u, posterior mean minus m
  Matrix inverse;     ///< 1 / (psi + S), 0 where missing
  Matrix gain;        ///< psi / (psi + S), 0 where missing
  Matrix open;        ///< S / (psi + S), 1 where missing
  Matrix latent;      ///< posterior mean of z
  Matrix spreads;     ///< its covariance M, packed lower triangles; B = diag(psi open) + (open L) M (open L)'
  Vector distance;    ///< (x - m)' T^-1 (x - m)
  Vector log_volume;  ///< log |2 pi T|

 private:
  void solve_latent(Index i);
  double log_product(const double* values) const;

  Index d_;
  Index h_;
  Index triangle_;
  Matrix total, residual, precisions, weighted_;
  Matrix matrix_;
  Vector row_;
  Vector scratch_;
};

}  // namespace halosvm::population
