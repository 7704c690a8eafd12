/// \file
/// The array types that cross the library's seams: row-major, double precision, never owned by the library.
#pragma once

#include "halosvm/core/visibility.hpp"

#include <Eigen/Core>

#include <limits>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

using Eigen::Index;

/// Row-major matrix: one row per example, or one row per problem (one-vs-rest).
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// Column of numbers.
using Vector = Eigen::VectorXd;

/// A matrix to read, also a block of a larger one.
using ConstMatrixRef = Eigen::Ref<const Matrix>;
/// A matrix to write into, also a block of a larger one.
using MatrixRef = Eigen::Ref<Matrix>;
/// A vector to read.
using ConstVectorRef = Eigen::Ref<const Vector>;
/// A vector to write into.
using VectorRef = Eigen::Ref<Vector>;
/// Memory of the caller, read as a matrix.
using ConstMatrixMap = Eigen::Map<const Matrix>;
/// Memory of the caller, written as a matrix.
using MatrixMap = Eigen::Map<Matrix>;
/// Memory of the caller, read as a vector.
using ConstVectorMap = Eigen::Map<const Vector>;
/// Memory of the caller, written as a vector.
using VectorMap = Eigen::Map<Vector>;

/// The positive infinity.
inline constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace halosvm
HALOSVM_PUBLIC_END
