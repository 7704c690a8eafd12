/// \file
/// The covariance W of the offsets of batches: its root, its M step, its coordinates and the slope there. Private to
/// populations.
#pragma once

#include "population/coordinates.hpp"

namespace halosvm::population {

/// The lower triangular C with C C' = W, columns of 0 where W is singular beyond rounding.
Matrix semidefinite_root(const ConstMatrixRef& W);

/// W = mean (o o' + P) - mean o mean o', in its form and with the batches of the prior; the means of the population
/// take the mean offset over, which leaves the distribution of measurements as it is (parameter expansion). Without it
/// the means would creep: an offset that its batch knows well leaves them nothing to explain.
void update_offsets(Population& next, const OffsetSums& sums, const Prior& prior);

/// -1/2 n [tr(D W^-1) + log|D^-1 W|] for the n batches of the prior and their variances D; -infinity where W is
/// singular.
double log_offset_prior(const Population& population, const Prior& prior);

/// Coordinates of W, to follow those of the components: Cholesky's factor, standard deviations or one, in units of
/// \p scale.
void append_offset_coordinates(const Population& population, const Vector& scale, std::vector<double>& out);

/// The slope for these, appended.
void append_offset_slope(const Population& population, const OffsetSums& sums, const Prior& prior, const Vector& scale,
                         Slope& out);

/// W from its coordinates.
void read_offset_coordinates(const double* coordinates, const Vector& scale, Population& out);

}  // namespace halosvm::population
