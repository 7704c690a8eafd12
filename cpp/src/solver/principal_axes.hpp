/// \file
/// Features that are very unequal, or far from 0 without an intercept to take that up: doubles hold no w at which the
/// gradient is small. Along the principal axes of the Hessian they do, as each has a scale of its own. Private to the
/// batch solvers.
#pragma once

#include "halosvm/model/linear_model.hpp"
#include "halosvm/objective/local_objective.hpp"
#include "linalg/columns.hpp"

#include <vector>

namespace halosvm {

/// One problem in orthonormal axes Q: Q'x_i with twice the digits of doubles, rounded once, and Q'S_i Q.
class PrincipalAxes {
 public:
  /// Whether there is memory for the examples in other axes, and w'S w keeps its digits there.
  static bool fit(const LocalObjective& objective);

  /// \param hessian of (w, intercept); its lower triangle is read.
  PrincipalAxes(const LocalObjective& objective, const Matrix& hessian);
  PrincipalAxes(const PrincipalAxes&) = delete;
  PrincipalAxes& operator=(const PrincipalAxes&) = delete;

  /// The problem in these axes; lives as long as this.
  const LocalObjective& objective() const { return objective_; }

  /// Q'w and Q w.
  LinearModel into(LinearModel model) const;
  LinearModel out_of(LinearModel model) const;

 private:
  std::shared_ptr<const Covariances> turned_covariances(const LocalObjective& objective);

  Columns axes_;
  Matrix means_;
  std::vector<double> factors_;
  std::vector<Index> offsets_;
  LocalObjective objective_;
};

}  // namespace halosvm
