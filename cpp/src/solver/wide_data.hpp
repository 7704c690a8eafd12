/// \file
/// Wide data. Where the means and factors of all examples span fewer dimensions than there are features, the minimum
/// lies in their span, and the problem there is the same with fewer features. Spreads that are alike in every direction
/// add no dimensions: the span is that of the means. Private to solver.cpp.
#pragma once

#include "halosvm/objective/local_objective.hpp"
#include "halosvm/solver/solver.hpp"

#include <vector>

namespace halosvm {

/// An orthonormal basis Q of a space that holds all means x_i and factors F_i, and the problem of Q'x_i and Q'F_i.
class Span {
 public:
  /// Whether there are features enough to spare, and few enough examples, all certain or with covariances F_i F_i'.
  static bool pays(const LocalObjective& objective);

  /// With k means and columns of factors it takes memory for n_features k numbers and 2 n_features k^2 operations.
  explicit Span(const LocalObjective& objective);

  /// The problem inside; lives as long as this.
  const LocalObjective& objective() const { return objective_; }

  /// Q w.
  LinearModel out_of(const LinearModel& model) const;

 private:
  Gaussians project(const LocalObjective& objective);
  void triangularise(const Execution& execution);

  Eigen::MatrixXd columns_;          ///< R of columns = Q R above, the reflections whose product is Q below
  std::vector<Vector> reflections_;  ///< their coefficients, for each panel of columns
  Matrix means_;
  std::vector<double> factors_;
  std::vector<Index> offsets_;
  LocalObjective objective_;
};

}  // namespace halosvm
