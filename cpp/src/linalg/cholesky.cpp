// Cholesky decompositions: the one place that compiles Eigen's.

#include "linalg/cholesky.hpp"

#include <Eigen/Cholesky>

namespace halosvm::linalg {

bool cholesky(ColumnsRef A) { return Eigen::LLT<ColumnsRef, Eigen::Lower>(A).info() == Eigen::Success; }

// NOLINTNEXTLINE(performance-unnecessary-value-param): X is written to
void cholesky_solve(const ConstColumnsRef& L, ColumnsRef X) {
  solve_lower(L, X);
  solve_lower_transposed(L, X);
}

// A single column is as common, and has faster code of its own.

void solve_lower(const ConstColumnsRef& L, ColumnsRef X) {
  if (X.cols() == 1) {
    auto x = X.col(0);
    L.triangularView<Eigen::Lower>().solveInPlace(x);
  } else {
    L.triangularView<Eigen::Lower>().solveInPlace(X);
  }
}

void solve_lower_transposed(const ConstColumnsRef& L, ColumnsRef X) {
  if (X.cols() == 1) {
    auto x = X.col(0);
    L.transpose().triangularView<Eigen::Upper>().solveInPlace(x);
  } else {
    L.transpose().triangularView<Eigen::Upper>().solveInPlace(X);
  }
}

double log_determinant(const ConstColumnsRef& L) { return 2.0 * L.diagonal().array().log().sum(); }

}  // namespace halosvm::linalg
