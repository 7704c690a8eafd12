/// \file
/// The fit of a population by whatever pass over the data. Private to populations.
#pragma once

#include "population/expectation.hpp"

#include <functional>

namespace halosvm::population {

/// A pass: a population and the offsets of batches at the point of the fit enter, sums leave.
using Pass = std::function<void(const Population&, const BatchOffsets&, Expectation&)>;

/// The population of the largest objective that steps from a start lead to.
/// \param total_weight of the examples.
PopulationFit fit(const Pass& pass, double total_weight, const Population& start, const PopulationSettings& settings);

}  // namespace halosvm::population
