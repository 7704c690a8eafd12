/// \file
/// What surrounds a batch method: data far from the origin are centred before it, and its result is judged with all
/// rounding in mind after it. Private to the batch solvers.
#pragma once

#include "halosvm/objective/local_objective.hpp"
#include "halosvm/solver/solver.hpp"

namespace halosvm {

/// A search for the minimum, as it is. \param about the moments of the objective.
using Search = Result(const LocalObjective& objective, const Moments& about, const LinearModel& start,
                      const BatchSettings& settings);

Search run_lbfgs;
/// The same where interior points may do better: up to \p enough passes, but no end is made near the end.
Result run_lbfgs_briefly(const LocalObjective& objective, const Moments& about, const LinearModel& start,
                         const BatchSettings& settings, Index enough);
Result run_lbfgs_anywhere(const Objective& objective, const Moments& about, const LinearModel& start,
                          const BatchSettings& settings);
/// The same from models with known objectives, with a floor of the spreads, for better bounds.
Result run_lbfgs_for_a_proof(const Objective& objective, const Moments& about, const Result& known,
                             const BatchSettings& settings, double floor);
/// L-BFGS along principal axes, with the Hessian at its best point as model, taken anew from time to time: of smooth
/// losses, one problem.
Search run_newton;
/// L-BFGS for one smooth problem that is not convex, to a point where the gradient vanishes: J never rises.
Search run_descent;
Search run_interior_point;
Search run_dual_coordinate;
/// L-BFGS or interior points, as suits the objective, in the span of the data where that pays.
Search run_in_span;

/// Whether the loss is smooth, and the examples have principal axes.
bool supports_newton(const LocalObjective& objective);

/// Whether interior points know the dual of the loss.
bool supports_interior_point(const LocalObjective& objective);

/// Whether all examples are certain, and the loss is one that steps in single dual variables know.
bool supports_dual_coordinate(const LocalObjective& objective);

/// Runs a method on the problem, or on the same problem seen from its centre, looks for minima at w = 0 if the loss is
/// convex, and certifies the result as the caller's numbers have it. \param inner what the method is to reach.
Result apply_once(Search& method, const LocalObjective& objective, const LinearModel& start, const BatchSettings& inner,
                  const BatchSettings& settings);

/// The same for convex losses, again with a smaller tolerance where rounding took what there was.
Result apply(Search& method, const LocalObjective& objective, const LinearModel& start, const BatchSettings& settings);

/// Judges a result with all that rounding may do to J of its model, which where that would matter is evaluated with
/// more digits.
void settle(const LocalObjective& objective, const Moments& about, const BatchSettings& settings, Result& result);

/// L-BFGS for an objective of which only evaluations are known, certified with all rounding in mind.
Result minimize_by_evaluations(const Objective& objective, const LinearModel& start, const BatchSettings& settings);

}  // namespace halosvm
