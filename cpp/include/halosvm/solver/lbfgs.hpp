/// \file
/// Limited-memory BFGS for many features: one pass over the data for each step.
#pragma once

#include "halosvm/objective/objective.hpp"
#include "halosvm/solver/solver.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Minimises all problems side by side, so that each pass over the data serves them all.
///
/// Where examples are many times the features, the problem is first solved roughly for some of them, spread over the
/// data (50 for each feature, at most a quarter of all). Their Hessian there (for several problems one matrix of second
/// moments) then models that of all: 4 to 10 passes take the rest of the way, however correlated the features are. Few
/// examples are scaled by a diagonal model, lam + kappa (variance of the feature), kappa = sum_i c_i psi_s / s, and
/// take 8 to 30 passes. The means are centred implicitly (spec C.2).
///
/// Every pass yields a certificate: the dual variables of its gradient, scaled down on the heavier side (spec A.8).
/// Where examples are certain, a spread floor is lowered step by step (spec A.7); the certificate is the dual bound of
/// the hinge itself, which the floor only enters in second order. A minimum at w = 0 is proved separately.
/// An objective whose examples are elsewhere takes evaluations alone, 8 to 30 and some for intercepts.
/// \param start where to begin; coefficients of an earlier fit save passes.
Result minimize_lbfgs(const Objective& objective, const LinearModel& start, const BatchSettings& settings);

}  // namespace halosvm
HALOSVM_PUBLIC_END
