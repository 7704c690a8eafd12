/// \file
/// Eigenvalues and eigenvectors of symmetric matrices, of which the lower triangle is read.
#pragma once

#include "linalg/columns.hpp"

#include <memory>

namespace halosvm::linalg {

/// All of them, ascending. Keeps its memory from one matrix to the next.
class SymmetricEigen {
 public:
  SymmetricEigen();
  ~SymmetricEigen();
  SymmetricEigen(const SymmetricEigen&) = delete;
  SymmetricEigen& operator=(const SymmetricEigen&) = delete;
  SymmetricEigen(SymmetricEigen&&) noexcept;
  SymmetricEigen& operator=(SymmetricEigen&&) noexcept;

  void compute(const ConstColumnsRef& A);
  /// The values alone, of A or of a symmetric tridiagonal matrix.
  void compute_values(const ConstColumnsRef& A);
  void compute_values(const Vector& diagonal, const Vector& subdiagonal);

  const Vector& values() const;
  /// Orthonormal columns, if they were computed.
  const Columns& vectors() const;

 private:
  struct Solver;
  std::unique_ptr<Solver> solver_;
};

/// A = Q T Q' with a symmetric tridiagonal T. Keeps its memory likewise.
class Tridiagonal {
 public:
  Tridiagonal();
  ~Tridiagonal();
  Tridiagonal(const Tridiagonal&) = delete;
  Tridiagonal& operator=(const Tridiagonal&) = delete;
  Tridiagonal(Tridiagonal&&) noexcept;
  Tridiagonal& operator=(Tridiagonal&&) noexcept;

  void compute(const Columns& A);
  Vector diagonal() const;
  Vector subdiagonal() const;
  /// X = Q X.
  void apply_q(Columns& X) const;

 private:
  struct Decomposition;
  std::unique_ptr<Decomposition> decomposition_;
};

}  // namespace halosvm::linalg
