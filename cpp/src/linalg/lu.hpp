/// \file
/// LU decompositions P A = L U with row exchanges.
#pragma once

#include "linalg/columns.hpp"

namespace halosvm::linalg {

class Lu {
 public:
  void compute(const ConstColumnsRef& A);
  /// log |det A|.
  double log_abs_determinant() const { return factors_.diagonal().cwiseAbs().array().log().sum(); }
  /// A^-1 x.
  Vector solve(const Vector& x) const;

 private:
  Columns factors_;  ///< L, whose diagonal is 1, and U
  Eigen::PermutationMatrix<Eigen::Dynamic> permutation_;
};

}  // namespace halosvm::linalg
