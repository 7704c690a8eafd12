/// \file
/// Stochastic gradient descent along a stream: examples come in once each, in their order; a state goes out that is all
/// there is to know of those before, so that where calls end changes nothing.
#pragma once

#include "halosvm/gaussians/gaussians.hpp"
#include "halosvm/loss/loss.hpp"
#include "halosvm/model/linear_model.hpp"
#include "halosvm/core/types.hpp"
#include "halosvm/solver/iterates.hpp"

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

/// The walk so far.
struct StreamState {
  Iterates iterates;         ///< weights, their average, and the mean of the features, 0 without intercept
  Vector intercept;          ///< one for each problem
  Vector average_intercept;  ///< likewise
  double square = 0.0;       ///< the mean of |x - centre|^2 + tr S
  double weight = 0.0;       ///< sum of the weights
  Index steps = 0;           ///< taken so far

  StreamState() = default;
  /// Before the first example, at a model.
  explicit StreamState(const LinearModel& start);
  /// The model: averages whose weights grow in proportion to the step; before the first step the start.
  LinearModel model() const;
};

/// One step for each example: the gradient of lam/2 |w|^2 + weight * loss, for means seen from the mean so far, times
/// 1 / (lam t + L), where L is the mean size |x|^2 + 1 + tr S of the examples, or that of this one if it is larger:
/// steps that are as long as an example's own curvature allows, and then fall like 1 / t (spec C.3). Where means and
/// covariances store few columns of an example, a step takes time for these alone.
void follow(const StreamExamples& examples, const Loss& loss, double regularisation, bool fit_intercept,
            const Execution& execution, StreamState& state);

}  // namespace halosvm
HALOSVM_PUBLIC_END
