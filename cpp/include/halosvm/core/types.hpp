/// \file
/// The array types that cross the library's seams: row-major, double precision, never owned by the library.
#pragma once

#include "halosvm/core/visibility.hpp"

#include <Eigen/Core>

#include <limits>

// Memory of Eigen's matrices crosses the border of the library, which allocates and frees it for this alignment.
static_assert(EIGEN_DEFAULT_ALIGN_BYTES == 64,
              "halosvm: compile every file that uses Eigen with -DEIGEN_MAX_ALIGN_BYTES=64, as the CMake target "
              "halosvm::halosvm does; with another alignment this program would free what it did not allocate");

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

/// Defined in the library for the version of Eigen alone that it was compiled with, whose way to allocate it shares.
template <int World, int Major>
int compiled_with_eigen() noexcept;
/// Makes a program with another version fail to link.
inline const int same_eigen = compiled_with_eigen<EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION>();

}  // namespace halosvm
HALOSVM_PUBLIC_END
