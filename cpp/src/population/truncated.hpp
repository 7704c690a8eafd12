/// \file
/// The standard normal law between two limits: its mass and moments, to about full precision however far out and
/// however narrow. Private to populations.
#pragma once

namespace halosvm::population {

/// Of Z ~ N(0, 1), given that it lies between the limits.
struct Truncated {
  double log_mass;  ///< log P(it lies there)
  double mean;      ///< of Z
  double variance;  ///< of Z, > 0
  double lost;      ///< 1 - variance, > 0, without cancellation
};

/// \param lower may be -infinity. \param upper above it, may be infinity.
/// \param width upper - lower, where both are finite: a difference that the caller knows better.
Truncated truncated_normal(double lower, double upper, double width);

}  // namespace halosvm::population
