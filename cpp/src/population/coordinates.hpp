/// \file
/// The coordinates in which populations are extrapolated, and the slope of the objective there. Private to populations.
#pragma once

#include "population/maximisation.hpp"

namespace halosvm::population {

/// Of the components that live: logarithms of weights, means, Cholesky's factors, or standard deviations and
/// factors, in units of \p scale; of tied components one V, behind the first. Where a variance goes to 0, the objective
/// is a parabola in these.
Vector coordinates(const Population& population, const Vector& scale);

/// The objective about a point, for each coordinate.
struct Slope {
  Vector rise;       ///< the gradient
  Vector curvature;  ///< about the second derivative, > 0, if the other coordinates stay
};

/// \param sums those of \p population.
Slope slope(const Population& population, const Statistics& sums, const Prior& prior, const Vector& scale);

/// The population at some coordinates; \p like gives its shape and its dead components.
Population population_at(const Vector& coordinates, const Population& like, const Vector& scale);

}  // namespace halosvm::population
