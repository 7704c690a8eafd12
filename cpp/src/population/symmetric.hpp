/// \file
/// Small symmetric positive definite matrices: Cholesky's factor and its inverse, in place. Private to populations.
#pragma once

#include "halosvm/core/types.hpp"

namespace halosvm::population {

/// Pivots below this part of the diagonal, times the order, are rounding: the matrix is singular.
inline constexpr double singular_pivot = 2.3e-16;
/// Squares of smaller numbers, and what is divided by them, leave the range of double.
inline constexpr double smallest_variance = 1e-150;

/// Replaces the lower triangle of A by L with A = L L'. False where A is not positive definite beyond rounding.
bool cholesky(MatrixRef A);

/// Replaces the lower triangle L by that of L^-1, and the upper one by 0.
void invert_lower(MatrixRef L);

/// log |L L'|.
double log_determinant(const ConstMatrixRef& L);

/// B := (L L')^-1 B.
void solve(const ConstMatrixRef& L, MatrixRef B);

}  // namespace halosvm::population
