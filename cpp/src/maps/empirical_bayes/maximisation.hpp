/// \file
/// The M step, the prior, and the coordinates in which populations are extrapolated. Private to the maps.
#pragma once

#include "maps/empirical_bayes/expectation.hpp"

namespace halosvm::maps {

/// What an M step gives.
struct Step {
  Population population;
  /// What the objective gains by the step, to second order: half the square of its length in the metric of the
  /// complete data.
  double gain = 0.0;
};

/// A component of less than this part of all weight has died: it keeps its place with the weight 0.
inline constexpr double dead = 1e-12;

/// \param prior diagonal of W, added to each scatter.
Step maximise(const Population& population, const Statistics& sums, double total_weight, const Vector& prior);

/// -1/2 sum_k tr(W V_k^-1), of factors with their diagonal in place of V_k; -infinity where V_k is singular and W not
/// 0.
double log_prior(const Population& population, const Vector& prior);

/// Coordinates without constraints: logarithms of weights and variances, means and factors in units of \p scale,
/// Cholesky's factors with the logarithm of their diagonal.
Vector coordinates(const Population& population, const Vector& scale);

/// What the complete data would tell of each coordinate, about: the squares of their standard errors, inverted.
Vector information(const Population& population, const Vector& scale, double total_weight);

/// The population at some coordinates; \p like gives its shape and its dead components.
Population population_at(const Vector& coordinates, const Population& like, const Vector& scale);

}  // namespace halosvm::maps
