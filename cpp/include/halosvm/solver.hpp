/// \file
/// What all solvers share: where they start, how they report, and how they end.
#pragma once

#include "halosvm/linear_model.hpp"
#include "halosvm/types.hpp"

namespace halosvm {

/// How a run ended.
enum class Status {
  converged,      ///< The certified suboptimality of every problem is within the tolerance.
  max_iterations  ///< The allowed number of passes or steps ended first.
};

/// One sentence for each status.
const char* message(Status status);

/// How far a run is, reported after each certificate.
struct Progress {
  Index epochs;          ///< passes over the data so far
  double objective;      ///< largest J over the problems
  double suboptimality;  ///< largest certified (J - J*) / J* over the problems
};

struct Result {
  LinearModel model;
  Vector objective;      ///< J for each problem
  Vector suboptimality;  ///< certified upper bound on (J - J*) / J* for each problem; infinite when nothing is known
  Index steps = 0;       ///< steps taken for the problem that took most
  Index epochs = 0;      ///< the same in passes over the data, rounded up
  Status status = Status::max_iterations;
};

}  // namespace halosvm
