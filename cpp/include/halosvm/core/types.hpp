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
using Vector = Eigen::VectorXd;

using ConstMatrixRef = Eigen::Ref<const Matrix>;
using MatrixRef = Eigen::Ref<Matrix>;
using ConstVectorRef = Eigen::Ref<const Vector>;
using VectorRef = Eigen::Ref<Vector>;
using ConstMatrixMap = Eigen::Map<const Matrix>;
using MatrixMap = Eigen::Map<Matrix>;
using ConstVectorMap = Eigen::Map<const Vector>;
using VectorMap = Eigen::Map<Vector>;

inline constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace halosvm
HALOSVM_PUBLIC_END
