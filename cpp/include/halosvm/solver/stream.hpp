/// \file
/// Stochastic gradient descent along a stream: examples come in once each, in their order; a state goes out that is all
/// there is to know of those before, so that where calls end changes nothing.
#pragma once

#include "halosvm/gaussians/gaussians.hpp"
#include "halosvm/loss/loss.hpp"
#include "halosvm/core/types.hpp"

#include <cstdint>
#include <memory>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// One of the terms psi(offset - sign f, s) that an example's loss is made of.
struct StreamTerm {
  const double* offsets = nullptr;  ///< one for each example, or null: that of the loss
  double sign = 0.0;                ///< of all examples, or 0: by their class codes
  double share = 1.0;               ///< what the term is multiplied by
};

/// Examples of a stream. Labels have class codes and one term, values two terms, one for each side.
struct StreamExamples {
  Gaussians data;                 ///< the examples
  const std::int16_t* codes;      ///< as in \ref Targets, or null
  std::vector<StreamTerm> terms;  ///< one for labels, two for values
  const double* weights;          ///< n_samples numbers >= 0, or null for 1; what has none is passed over
  const double* variances;        ///< of the targets, or null
};

/// The walk so far: its place, its average, and where the features are. All are 0 before the first example.
struct StreamState {
  Matrix coef;               ///< n_problems x n_features
  Matrix average;            ///< with weights that grow in proportion to the step; the model
  Vector intercept;          ///< one for each problem
  Vector average_intercept;  ///< likewise
  Vector centre;             ///< the mean of the features, n_features; 0 without intercept
  double square = 0.0;       ///< the mean of |x - centre|^2 + tr S
  double weight = 0.0;       ///< sum of the weights
  Index steps = 0;           ///< taken so far
};

/// One step for each example: the gradient of lam/2 |w|^2 + weight * loss, for means seen from the mean so far, times
/// 1 / (lam t + L), where L is the mean size |x|^2 + 1 + tr S of the examples, or that of this one if it is larger:
/// steps that are as long as an example's own curvature allows, and then fall like 1 / t (spec C.3).
void follow(const StreamExamples& examples, const Loss& loss, double regularisation, bool fit_intercept,
            const Execution& execution, StreamState& state);

}  // namespace halosvm
HALOSVM_PUBLIC_END
