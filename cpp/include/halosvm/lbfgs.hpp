/// \file
/// Limited-memory BFGS for many features: one pass over the data for each step.
#pragma once

#include "halosvm/objective.hpp"
#include "halosvm/solver.hpp"

namespace halosvm {

/// Minimises all problems side by side, so that each pass over the data serves them all.
///
/// The means are centred implicitly (spec C.2), and features are scaled by a diagonal model of the Hessian,
/// lam + kappa (variance of the feature), kappa = sum_i c_i psi_s / s. Where examples are certain, a spread floor is
/// lowered step by step (spec A.7); the certificate is the dual bound of the hinge itself, which the floor only enters
/// in second order.
/// \param start where to begin; coefficients of an earlier fit save passes.
Result minimize_lbfgs(const Objective& objective, const LinearModel& start, const BatchSettings& settings);

}  // namespace halosvm
