/// \file
/// Cholesky's factor by plain loops, of a matrix of order n whose rows follow each other in memory: the oracles' own,
/// in any precision.
#pragma once

#include "halosvm/core/types.hpp"

#include <cmath>

namespace oracle {

using halosvm::Index;

/// Puts L with L L' = A into the lower triangle; false where A is not positive definite.
template <class T>
bool factorise(T* a, Index n) {
  for (Index i = 0; i < n; ++i) {
    T* row = a + i * n;
    for (Index j = 0; j <= i; ++j) {
      const T* other = a + j * n;
      T rest = row[j];
      for (Index k = 0; k < j; ++k) rest -= row[k] * other[k];
      if (i == j && !(rest > 0)) return false;
      row[j] = i == j ? std::sqrt(rest) : rest / other[j];
    }
  }
  return true;
}

/// x becomes L^-1 x.
template <class T>
void solve(const T* l, Index n, T* x) {
  for (Index i = 0; i < n; ++i) {
    for (Index k = 0; k < i; ++k) x[i] -= l[i * n + k] * x[k];
    x[i] /= l[i * n + i];
  }
}

/// x becomes L'^-1 x.
template <class T>
void solve_transposed(const T* l, Index n, T* x) {
  for (Index i = n - 1; i >= 0; --i) {
    for (Index k = i + 1; k < n; ++k) x[i] -= l[k * n + i] * x[k];
    x[i] /= l[i * n + i];
  }
}

}  // namespace oracle
