/// \file
/// J of models in the caller's numbers: coefficients and intercepts as they are returned come in, values leave that
/// rounding has not touched but once.
#pragma once

#include "halosvm/objective/local_objective.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// What lies between the numbers of a problem and the caller's: m = (offset + margin - sign (w'x + b)) / unit and
/// s = |R'w|_q / unit, of targets in the caller's numbers and a regulariser of w / unit.
struct TargetScale {
  double margin = 0.0;  ///< to add to each offset, where the sum of both would be rounded
  double unit = 1.0;    ///< what the problem takes for 1
};

/// Values of J, and how far each may be from the true one.
struct ExactValues {
  Vector value;  ///< J, one for each intercept
  Vector error;  ///< how far each may be from the true one
};

/// J at w and each b with about twice the digits of doubles in w'x + b, and in w'S w where that cancels, rounded once:
/// one problem. Full matrices are meant without the negative eigenvalues that rounding gives them: bounds are those of
/// the positive part. \param as_stored with them, which takes less time, to compare models.
ExactValues exact_values(const LocalObjective& problem, const ConstVectorRef& w, const ConstVectorRef& b,
                         const TargetScale& scale = {}, bool as_stored = false);

}  // namespace halosvm
HALOSVM_PUBLIC_END
