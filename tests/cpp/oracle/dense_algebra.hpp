/// \file
/// Products of dense matrices and orthogonal ones, compiled once for all tests.
#pragma once

#include "halosvm/core/types.hpp"
#include "oracle/random.hpp"

namespace oracle {

using halosvm::ConstMatrixRef;
using halosvm::ConstVectorRef;

/// A B.
Matrix product(const ConstMatrixRef& A, const ConstMatrixRef& B);

/// A x.
Vector times(const ConstMatrixRef& A, const ConstVectorRef& x);

/// A S A', for a symmetric S.
Matrix congruent(const ConstMatrixRef& A, const ConstMatrixRef& S);

/// x'S y.
double bilinear(const ConstVectorRef& x, const ConstMatrixRef& S, const ConstVectorRef& y);

/// The largest |A_ij - B_ij|, NaN where one is.
double largest_difference(const ConstMatrixRef& A, const ConstMatrixRef& B);

/// The square root of the sum of (A_ij - B_ij)^2.
double distance(const ConstMatrixRef& A, const ConstMatrixRef& B);

/// Rows, and columns, of length 1 at right angles: those of a random matrix, each without its parts along those before.
Matrix random_orthogonal(Index d, Random& random);

}  // namespace oracle
