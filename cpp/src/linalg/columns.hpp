/// \file
/// Column-major matrices, which the decompositions work on. What comes in and what goes out of linalg/ are these.
#pragma once

#include "halosvm/core/types.hpp"

namespace halosvm {

using Columns = Eigen::MatrixXd;
using ColumnsRef = Eigen::Ref<Columns>;
using ConstColumnsRef = Eigen::Ref<const Columns>;

}  // namespace halosvm
