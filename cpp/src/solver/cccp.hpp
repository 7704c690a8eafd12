/// \file
/// The concave-convex procedure, for losses h(m - s) that fall as the spread grows (spec I.4). Private to the solvers
/// of what is not convex.
#pragma once

#include "solver/method.hpp"

namespace halosvm {

/// Minimises one problem in rounds. In each the spreads are replaced by linear functions that are nowhere larger and
/// touch them at the present w, which moves the means, x_i -> x_i + y_i S_i w / s_i; the convex problem of these
/// certain points is minimised by default. J never rises. The rounds begin at the given model, or with the means
/// themselves where its w is 0, and end when one gains less than the hundredth part of the tolerance.
///
/// Stationary are problems whose last convex one is proved to gain no more than the tolerance anywhere.
Search run_rounds;

}  // namespace halosvm
