/// \file
/// Cholesky factors of positive definite matrices: L of A = L L', in the lower triangle of a matrix.
#pragma once

#include "linalg/columns.hpp"

namespace halosvm::linalg {

/// Replaces the lower triangle of \p A, which alone is read, by L; false, with rubbish in it, if rounding finds A not
/// positive definite.
bool cholesky(ColumnsRef A);

/// X = A^-1 X.
void cholesky_solve(const ConstColumnsRef& L, ColumnsRef X);

/// X = L^-1 X.
void solve_lower(const ConstColumnsRef& L, ColumnsRef X);

/// X = L'^-1 X.
void solve_lower_transposed(const ConstColumnsRef& L, ColumnsRef X);

/// log |A|.
double log_determinant(const ConstColumnsRef& L);

}  // namespace halosvm::linalg
