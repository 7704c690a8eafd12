/// \file
/// QR decompositions A = Q R by Householder reflections: R in the upper triangle of a matrix, the reflections whose
/// product is Q below, and a coefficient for each.
#pragma once

#include "linalg/columns.hpp"

namespace halosvm::linalg {

/// Replaces \p A by R and the reflections, and returns their coefficients.
Vector qr(ColumnsRef A);

/// The same for A with its columns in the order of their sizes, which is not told.
Vector pivoted_qr(ColumnsRef A);

/// X = Q X.
void apply_q(const ConstColumnsRef& reflections, const ConstVectorRef& coefficients, ColumnsRef X);

/// X = Q'X.
void apply_q_transposed(const ConstColumnsRef& reflections, const ConstVectorRef& coefficients, ColumnsRef X);

}  // namespace halosvm::linalg
