/// \file
/// Location and scale of the features, which solvers need for centring, step sizes and scaling.
#pragma once

#include "halosvm/objective.hpp"

namespace halosvm {

struct Moments {
  Vector mean;      ///< sum_i c_i x_i
  Vector centre;    ///< the mean, or 0 without intercept: centring is exact only when the intercept is free
  Vector variance;  ///< sum_i c_i [ (x_i - centre)^2 + diag(S_i) ] for each feature
};

/// One pass over the data, with squares about the mean of some examples: about 0 they would cancel far from it.
Moments moments(const Objective& objective);

}  // namespace halosvm
