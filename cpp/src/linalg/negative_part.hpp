/// \file
/// The negative part of a symmetric matrix S = S+ - N that is positive semi-definite but for rounding. N is as small as
/// a rounding error of S, and is found with twice the digits of doubles.
#pragma once

#include "linalg/columns.hpp"

namespace halosvm::linalg {

/// N of one matrix after the other.
class NegativePart {
 public:
  /// \param S square and symmetric.
  void compute(const ConstMatrixRef& S);

  /// Whether N = 0.
  bool none() const { return directions_.cols() == 0; }

  /// N w.
  Vector times(const ConstVectorRef& w) const { return directions_ * (directions_.transpose() * w); }
  /// w'N w.
  double square(const ConstVectorRef& w) const { return (directions_.transpose() * w).squaredNorm(); }

 private:
  Columns directions_;  ///< N = directions_ directions_'
};

}  // namespace halosvm::linalg
