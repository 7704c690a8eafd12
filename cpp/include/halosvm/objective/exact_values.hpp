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
  double unit = 1.0;
};

/// J at w and each b with about twice the digits of doubles in w'x + b, and in w'S w where that cancels: one problem.
Vector exact_values(const LocalObjective& problem, const ConstVectorRef& w, const ConstVectorRef& b,
                    const TargetScale& scale = {});

}  // namespace halosvm
HALOSVM_PUBLIC_END
