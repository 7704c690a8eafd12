/// \file
/// The minimum at w = 0 (spec A.6), where spreads have a kink and no gradient vanishes. Private to the batch solvers.
#pragma once

#include "halosvm/objective.hpp"
#include "halosvm/solver.hpp"

namespace halosvm {

/// If w = 0 does no worse than the model of \p result and proves to be optimal to the tolerance, makes it the result.
///
/// The proof: with smaller spreads the objective is nowhere larger, so its minimum bounds J* from below; and as the
/// spreads grow to where w = 0 becomes the best, that minimum grows to J(0). Its smooth dual bound is within reach of
/// any solver.
/// \param problem an objective of one problem. \param settings their tolerance counts.
/// \return whether the result is now w = 0.
bool take_zero_model(const Objective& problem, const BatchSettings& settings, Result& result);

/// The same for each problem of a finished run, which it judges.
void take_zero_models(const Objective& objective, const BatchSettings& settings, Result& result);

/// The two methods as they are, without such a proof.
Result run_lbfgs(const Objective& objective, const LinearModel& start, const BatchSettings& settings);
Result run_interior_point(const Objective& objective, const LinearModel& start, const BatchSettings& settings);

}  // namespace halosvm
