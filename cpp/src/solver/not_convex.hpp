/// \file
/// Losses that are not convex: one problem after another, each to a point from where nothing leads down. Private to
/// minimize.
#pragma once

#include "halosvm/objective/objective.hpp"
#include "halosvm/solver/solver.hpp"

namespace halosvm {

/// Losses h(m - s) go through rounds of convex problems (cccp.hpp). Others begin at the minimum of their convex
/// majorant, or at the given model if its w is not 0, and descend from there. J never rises; no bound is known.
Result minimize_not_convex(const Objective& objective, const LinearModel& start, const BatchSettings& settings);

}  // namespace halosvm
