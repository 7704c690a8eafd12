/// \file
/// From the parameters of a kernel to features in which its bandwidth is 1, and to its rule.
#pragma once

#include "halosvm/kernel.hpp"
#include "rule.hpp"

namespace halosvm::kernels {

/// Throws unless the parameters make sense for so many features.
void check_kernel(const ExpectedKernel& kernel, Index n_features);

/// Factors of the features that make the bandwidth 1: one for all, or one for each.
Vector scale_of(const ExpectedKernel& kernel);

/// Where differences of means count, the mean of up to 256 examples: far from the origin, squares would cancel.
Vector centre_of(const ExpectedKernel& kernel, const Gaussians& data);

std::unique_ptr<PairRule> make_rule(const ExpectedKernel& kernel, const Side& x, const Side& y);

}  // namespace halosvm::kernels
