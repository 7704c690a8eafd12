/// \file
/// The errors of measurements as the maps read them: variances of a block of rows, or the matrix of one row.
#pragma once

#include "halosvm/gaussians/covariances.hpp"
#include "halosvm/gaussians/array_view.hpp"

#include <vector>

namespace halosvm::population {

class Noise {
 public:
  explicit Noise(const Covariances& covariances);

  /// S_i = 0 for all rows.
  bool zero() const { return kind_ == Kind::zero; }
  /// All S_i are diagonal.
  bool diagonal() const { return kind_ == Kind::zero || variances_ != nullptr; }
  bool full() const { return matrices_ != nullptr; }
  Index n_features() const { return covariances_.n_features(); }

  /// Doubles of scratch memory for the operations below, for up to \p rows rows.
  Index scratch_size(Index rows) const;

  /// out: rows.count x n_features, of diagonal errors.
  void variances(const Rows& rows, MatrixMap out, double* scratch) const;

  /// The n_features x n_features numbers of one row of full errors: the caller's or \p scratch.
  const double* stored_matrix(Index row, double* scratch) const;

  /// out = S_row, n_features x n_features, both triangles.
  void matrix(Index row, MatrixMap out, double* scratch) const;

  /// The stored numbers of one row, 0 where they belong to a missing value: equal numbers are equal errors.
  void signature(Index row, const unsigned char* there, std::vector<double>& out, double* scratch) const;

 private:
  enum class Kind { zero, isotropic, diagonal, other };

  const Covariances& covariances_;
  Kind kind_ = Kind::other;
  const ArrayView* variances_ = nullptr;  ///< of isotropic and diagonal errors
  const ArrayView* matrices_ = nullptr;   ///< of full errors
};

}  // namespace halosvm::population
