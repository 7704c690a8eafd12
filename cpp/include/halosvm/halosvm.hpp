/// \file
/// Everything, in the order of the flow: Gaussians -> (m, s) -> loss -> objective -> solver -> linear model.
#pragma once

#include "halosvm/covariance/diagonal.hpp"
#include "halosvm/covariance/full.hpp"
#include "halosvm/covariance/isotropic.hpp"
#include "halosvm/covariance/low_rank.hpp"
#include "halosvm/covariance/scaled.hpp"
#include "halosvm/covariance/zero.hpp"
#include "halosvm/subspace.hpp"
#include "halosvm/gaussians.hpp"
#include "halosvm/mixtures.hpp"
#include "halosvm/maps/empirical_bayes.hpp"
#include "halosvm/kernel.hpp"
#include "halosvm/loss.hpp"
#include "halosvm/objective.hpp"
#include "halosvm/moments.hpp"
#include "halosvm/solver.hpp"
#include "halosvm/interior_point.hpp"
#include "halosvm/lbfgs.hpp"
#include "halosvm/sgd.hpp"
#include "halosvm/linear_model.hpp"
#include "halosvm/calibration.hpp"
