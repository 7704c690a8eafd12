/// \file
/// Platt scaling: probabilities p = 1 / (1 + exp(A f + B)) from decision values f (spec E; Lin, Lin and Weng, 2007).
#pragma once

#include "halosvm/core/types.hpp"

#include <cstdint>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Probabilities of decision values by a logistic curve (spec E).
struct PlattScaling {
  double slope = 0.0;   ///< A
  double offset = 0.0;  ///< B

  /// P(y = 1 | f).
  double probability(double f) const;

  /// E P(y = 1 | F) for F ~ N(mean, std^2), within 1e-4 of the exact value.
  double expected_probability(double mean, double std) const;
};

/// Fits by Newton's method with a line search; the targets are drawn in from 0 and 1 by the class weights, so that
/// separable data stay finite. With one class only, A = 0. f and c f + d give the same probabilities.
/// \param decision decision values, best from cross-validation. \param positive 1 for y = 1, else 0, same length.
/// \param weights same length, >= 0, or null for equal weights.
/// \throws std::invalid_argument when there is no positive weight, or a value is not finite, or A would not be.
PlattScaling fit_platt(const ConstVectorRef& decision, const std::uint8_t* positive, const double* weights);

}  // namespace halosvm
HALOSVM_PUBLIC_END
