/// \file
/// Kernels of examples with themselves, and what they and the weights of a mixture make of its components' kernels.
#pragma once

#include "halosvm/kernel/kernel.hpp"
#include "kernel/rule.hpp"

namespace halosvm::kernels {

/// What the rule for \p side with itself says of each mixture with itself: -log k(X_i, X_i), or k(X_i, X_i).
Vector own_kernels(const ExpectedKernel& kernel, const Mixtures& data, const Side& side, const Execution& execution);

/// The factor of each component's kernels: its weight, if normalised over the root of its mixture's kernel with itself;
/// 0 where that is 0 / 0. For a logarithmic rule minus the logarithm of it. With these, by Cauchy and Schwarz, no
/// kernel of two components exceeds 1 if normalised.
Vector component_factors(const ExpectedKernel& kernel, const Mixtures& data, const Side& side,
                         const Execution& execution);

}  // namespace halosvm::kernels
