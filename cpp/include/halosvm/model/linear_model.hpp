/// \file
/// The fitted model: scores f_k(x) = w_k'x + b_k, and their mean and variance for uncertain inputs.
#pragma once

#include "halosvm/gaussians/gaussians.hpp"
#include "halosvm/core/check.hpp"
#include "halosvm/core/types.hpp"

#include <string>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Coefficients and intercepts of n_problems linear scores.
struct LinearModel {
  Matrix coef;       ///< n_problems x n_features
  Vector intercept;  ///< n_problems

  LinearModel() = default;
  /// The model that is 0.
  LinearModel(Index n_problems, Index n_features)
      : coef(Matrix::Zero(n_problems, n_features)), intercept(Vector::Zero(n_problems)) {}

  /// Score \p k alone.
  LinearModel only(Index k) const {
    check::require(k >= 0 && k < coef.rows(), "k", "is " + std::to_string(k) + "; there is no such score");
    LinearModel one(1, coef.cols());
    one.coef = coef.row(k);
    one.intercept = intercept.segment(k, 1);
    return one;
  }
};

/// The same scores for means as they are seen from \p centre: intercepts b_k + w_k'centre, rounded once.
LinearModel seen_from(LinearModel model, const ConstVectorRef& centre);

/// out(i, k) = w_k'x_i + b_k, the score of a certain point and the mean score of an uncertain one.
/// \param means n_samples x n_features. \param out n_samples x n_problems.
/// \throws std::invalid_argument for sizes that do not agree, and numbers that are not finite.
void decision_function(const LinearModel& model, const Means& means, MatrixRef out, const Execution& execution);
/// The same for an array of means.
// NOLINTNEXTLINE(performance-unnecessary-value-param): out is written to
inline void decision_function(const LinearModel& model, const ArrayView& means, MatrixRef out,
                              const Execution& execution) {
  decision_function(model, DenseMeans(means), out, execution);
}

/// out(i, k) = sqrt(w_k' S_i w_k), the standard deviation of the score (spec K.8).
/// \param out n_samples x n_problems.
/// \throws std::invalid_argument likewise, and for covariances that are none.
void decision_std(const LinearModel& model, const Covariances& covariances, MatrixRef out, const Execution& execution);

/// P(f > 0) for f ~ N(mean, std^2); for std = 0 it is 0, 1/2 or 1 by the sign of the mean (spec K.8).
double side_probability(double mean, double std);

}  // namespace halosvm
HALOSVM_PUBLIC_END
