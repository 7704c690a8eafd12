/// \file
/// Orthonormal bases of the span of columns, and random columns to begin with.
#pragma once

#include "linalg/columns.hpp"

namespace halosvm::linalg {

/// columns = (orthonormal columns) triangle, through the Cholesky factor of columns' columns: matrix products alone.
/// \returns false, with the columns as they were, where they are so near to dependent that rounding would show.
bool orthonormalise_by_cholesky(Columns& columns, Columns& triangle);

/// The same by Householder reflections, for columns that may depend on each other.
void orthonormalise_by_reflections(Columns& columns, Columns& triangle);

/// Uniform numbers from [-1, 1), the same at every call.
void fill_at_random(VectorRef out);

}  // namespace halosvm::linalg
