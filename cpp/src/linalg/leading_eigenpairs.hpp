/// \file
/// The leading eigenvectors of one symmetric positive semi-definite matrix, as many as hold a fraction of its trace.
#pragma once

#include "halosvm/core/parallel.hpp"
#include "linalg/eigen.hpp"

namespace halosvm::linalg {

/// Keeps its memory from one matrix to the next; one object for each thread.
class LeadingEigenpairs {
 public:
  /// \param S symmetric up to rounding. \param p as in \ref kept_rank. \param precision relative error of its entries.
  void compute(const ConstMatrixRef& S, double p, double precision, Checkpoint& checkpoint);

  Index rank() const { return rank_; }
  /// Descending.
  auto values() const { return values_.head(rank_); }
  /// Orthonormal columns.
  auto vectors() const { return vectors_.leftCols(rank_); }

 private:
  void compute_all(double p, double precision);
  bool compute_few(double p, double tolerance, Checkpoint& checkpoint);
  void start_basis();
  void extend_basis(Index m);
  void orthogonalise(Index m);
  void orthonormalise();
  enum class Verdict { go_on, hopeless, done };
  Verdict judge(Index m, Index most, double p, double tolerance);
  bool verified(Index m, double tolerance);

  double scale_ = 0.0;
  double total_ = 0.0;
  Columns matrix_;  // S / scale_
  Vector values_;
  Columns vectors_;
  Index rank_ = 0;
  SymmetricEigen solver_;
  Tridiagonal tridiagonal_;
  Vector diagonal_;
  Vector subdiagonal_;

  Columns basis_;      // orthonormal columns Q, block after block
  Columns projected_;  // lower triangle of Q' S Q
  Columns next_;       // the block that follows
  Columns weights_;
  Columns upper_;     // S times the newest block = Q (...) + next_ * upper_
  Columns triangle_;  // of the last QR
};

}  // namespace halosvm::linalg
