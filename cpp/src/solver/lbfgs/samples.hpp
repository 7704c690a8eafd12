/// \file
/// Samples of the rows: an objective of many examples comes in, rows that stand for all of them go out, and a model of
/// the Hessian. Private to L-BFGS.
#pragma once

#include "halosvm/objective/local_objective.hpp"
#include "halosvm/model/linear_model.hpp"
#include "linalg/cholesky_factor.hpp"

#include <memory>
#include <vector>

namespace halosvm {

/// How many rows make a sample that is enough for their Hessian to be near that of all; 0 where none pays.
Index sample_size(const LocalObjective& objective);

/// So many rows, spread over the data.
std::vector<Index> spread_rows(const LocalObjective& objective, Index size);

/// Whether each class has weight among the rows.
bool has_all_classes(const LocalObjective& objective, const std::vector<Index>& rows);

/// A matrix near the Hessians of all problems at a model, from some of the rows. One problem gets its Hessian; several
/// share the second moment of the examples, which is the Hessian at w = 0 with a wide floor, times their mean
/// curvatures.
struct HessianModel {
  HessianModel(const LocalObjective& sample, const Moments& about, const LinearModel& model);

  std::shared_ptr<const CholeskyFactor> factor;  ///< null if rounding left the matrix without one
  Vector scale;                                  ///< by which it is multiplied, one for each problem
};

}  // namespace halosvm
