/// \file
/// From the parameters of a kernel to features in which its bandwidth is 1, and to its rule.
#pragma once

#include "halosvm/kernel/kernel.hpp"
#include "kernel/rule.hpp"

namespace halosvm::kernels {

/// Throws unless the parameters make sense for so many features.
void check_kernel(const ExpectedKernel& kernel, Index n_features);

/// Factors of the features that make the bandwidth 1: one for all, or one for each.
Vector scale_of(const ExpectedKernel& kernel);

/// Where differences of means count, what is subtracted from the means: far from the origin, squares would cancel. In
/// each feature it is the number nearest to 0 between the least and the largest mean, so that a subtraction errs by no
/// more than the rounding of the mean itself, whatever outliers there are among the others.
Vector centre_of(const ExpectedKernel& kernel, const Gaussians& data);

std::unique_ptr<PairRule> make_rule(const ExpectedKernel& kernel, const Side& x, const Side& y);

}  // namespace halosvm::kernels
