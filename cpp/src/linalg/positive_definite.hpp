/// \file
/// Whether many small symmetric matrices are positive definite, eight at a time.
#pragma once

#include "halosvm/core/types.hpp"

#include <cstdint>

namespace halosvm::linalg {

/// Matrices side by side: one of order 10 fills no register.
inline constexpr Index side_by_side = 8;

/// Where the lower triangles of eight matrices have their entries (i, j), j <= i.
inline Index packed_entry(Index i, Index j) { return (i * (i + 1) / 2 + j) * side_by_side; }

/// Decomposes eight matrices as Cholesky does. \param lower their lower triangles, overwritten. \param order of each.
/// \return a bit for each that is not positive definite.
std::uint32_t not_positive_definite(double* lower, Index order);

}  // namespace halosvm::linalg
