/// \file
/// The minimum at w = 0 (spec A.6), where spreads have a kink and no gradient vanishes. Private to the batch solvers.
#pragma once

#include "halosvm/objective/local_objective.hpp"
#include "halosvm/solver/solver.hpp"

namespace halosvm {

/// Judges a finished run, and for each problem in which w = 0 does no worse than the model and proves to be optimal to
/// the tolerance, makes it the result.
///
/// The proof: with smaller spreads the objective is nowhere larger, so its minimum bounds J* from below; and as the
/// spreads grow to where w = 0 becomes the best, that minimum grows to J(0). Its smooth dual bound is within reach of
/// any solver.
/// \param settings their tolerance counts.
void take_zero_models(const LocalObjective& objective, const BatchSettings& settings, Result& result);

}  // namespace halosvm
