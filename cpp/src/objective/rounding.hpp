/// \file
/// What rounding may do to a certificate: to the objective of a model, and to a bound on its minimum. Private to the
/// solvers.
#pragma once

#include "halosvm/model/linear_model.hpp"
#include "halosvm/objective/exact_values.hpp"
#include "halosvm/objective/local_objective.hpp"

#include <vector>

namespace halosvm {

/// What a dual bound is made of, beside its coefficients: sums over the examples, as in \ref Evaluation.
struct DualSums {
  double value;   ///< the dual
  double size;    ///< of its terms
  double slope;   ///< sum c theta
  double square;  ///< sum c (theta^2 + phi^2)

  /// Of dual variables theta in [0, 1] and phi <= kappa(theta): phi^2 <= 0.41 theta for quantiles, theta otherwise.
  static DualSums of(const LossTraits& traits, double value, double size, double slope) {
    return {value, size, slope, (traits.quantile_dual ? 1.41 : 2.0) * slope};
  }
};

class Rounding {
 public:
  Rounding(const Objective& objective, const Moments& about);

  /// How far rounding of w'x + b and of spreads may move J(w, b), but for cancellation in w'S w. \param square a bound
  /// of sum c (psi_m^2 + psi_s^2), or infinity where the slopes may jump.
  double of_value(const ConstVectorRef& w, double b, double square) const;

  /// D of the dual variables of an evaluation at w, or of a floor there, with the affine minorants of the heavier side
  /// scaled down, so that sum c theta y = 0 as it must: a bound on J* wherever the intercept is (spec K.0b). \param
  /// dual_w lam w - grad_w J for means seen from the centre.
  double bound(const Evaluation& at, Index k, const ConstVectorRef& w, const ConstVectorRef& dual_w) const;

  /// D = dual - (|dual_w| + moved)^2 / (2 lam) of the dual variables, or of a share of them where that is larger, less
  /// what rounding may have added to it (spec A.8, K.0b).
  double bound(const DualSums& sums, const ConstVectorRef& dual_w, double moved = 0.0) const;

  /// What cancellation in w'S w may do to D: 0 but for full matrices. \param curvature sum_i c_i psi_s / s.
  double of_spreads(const ConstVectorRef& w, double curvature) const;
  /// And to J.
  double of_spreads(const LocalObjective& problem, const LinearModel& model) const;

 private:
  double root_;           ///< of 2 lam
  double unit_scores_;    ///< relative error of w'x
  double unit_features_;  ///< and of other sums over the features
  double unit_samples_;   ///< and over the examples
  double concentration_;  ///< sums with weights c theta are at most so many times sum c theta times the size below
  double offset_;         ///< the largest offset of a margin deficit
  double steepest_;       ///< a bound of |(psi_m, psi_s)|
  double sharpest_;       ///< and of their Hessian
  double width_;          ///< root of the total variance
  Vector size_;           ///< root mean square of each feature, its error included
  Vector widest_;         ///< the largest deviation of each feature in full matrices; empty for other kinds
};

/// The dual variables' sums and the bound D from them, with about twice the digits of doubles: one problem, example by
/// example.
class ExactDual {
 public:
  /// \param centre from where means are seen.
  ExactDual(const LocalObjective& problem, const ConstVectorRef& centre);
  ~ExactDual();
  ExactDual(ExactDual&&) noexcept;

  /// Adds theta (x - centre) and density times a unit vector of the example's spread: that of F'w, or, if \p v is not
  /// empty, of v, which may be shorter than density.
  void add(Index row, double theta, double density, const ConstVectorRef& v, const Matrix& w);

  /// Whether the sums take no longer than an iteration or two.
  static bool pays(const LocalObjective& objective);

  /// The sum of c times all that was added.
  Vector gradient() const;

  /// D, with the dual variables of the heavier side scaled down (spec A.8).
  double bound() const;

 private:
  struct Side;
  const LocalObjective& problem_;
  Vector centre_;
  Matrix column_;
  Vector scratch_;
  std::vector<Side> sides_;  ///< of y = 1 and y = -1
};

/// A value of J, and how far it may be from the true one.
struct ExactValue {
  double value;
  double error;
};

/// \ref exact_values of one model.
ExactValue exact_value(const LocalObjective& problem, const LinearModel& model, bool as_stored = false);

/// Whether \ref exact_value takes no longer than a fit.
bool exact_value_pays(const LocalObjective& objective);

/// Whether doubles lose w'S w to cancellation and there are so few examples that \ref exact_value costs nothing.
bool exact_value_is_due(const LocalObjective& objective);

}  // namespace halosvm
