/// \file
/// Eigenvectors of a symmetric tridiagonal matrix for eigenvalues that are known.
#pragma once

#include "linalg/columns.hpp"

namespace halosvm::linalg {

/// Finds the vectors by inverse iteration, each on its own, and then makes them orthogonal: those of close eigenvalues
/// come out in one common subspace, where any orthonormal basis will do.
/// \param diagonal n numbers. \param subdiagonal n - 1 numbers.
/// \param eigenvalues k of its eigenvalues, descending. \param vectors receives n x k, orthonormal columns.
/// \returns whether every residual |T v - lambda v| is of the size of rounding; otherwise the vectors are worthless.
bool inverse_iteration(const ConstVectorRef& diagonal, const ConstVectorRef& subdiagonal,
                       const ConstVectorRef& eigenvalues, Columns& vectors);

}  // namespace halosvm::linalg
