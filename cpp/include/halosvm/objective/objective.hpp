/// \file
/// What a solver sees: J(w, b) = lam/2 |w|^2 + sum_i c_i psi(m_i, s_i) with sum_i c_i = 1, for one or several
/// one-vs-rest problems, wherever the examples are. Weights are matrices with one row for each problem.
#pragma once

#include "halosvm/loss/loss.hpp"
#include "halosvm/core/types.hpp"

#include <memory>
#include <string>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

class LocalObjective;

/// Value and gradient of J, and the parts of a dual bound, one row or entry for each problem. All are sums over
/// examples. With theta = psi_m, phi = psi_s the affine minorant of psi that touches it at (m, s) is at m = offset,
/// s = 0 what is summed here as the dual (spec K.0b).
struct Evaluation {
  Vector value;          ///< J
  Vector slope;          ///< sum_i c_i |theta_i|
  Vector square;         ///< sum_i c_i (theta_i^2 + phi_i^2)
  Vector dual;           ///< sum_i c_i [psi_i + theta_i (offset_i - m_i) - phi_i s_i]
  Vector dual_positive;  ///< the part of the examples with y theta > 0
  Vector dual_size;      ///< the same with absolute values of the terms, for rounding
  Vector curvature;      ///< sum_i c_i psi_s / s
  Matrix coef;           ///< the gradient by w, n_problems x n_features
  Vector intercept;      ///< the gradient by b

  /// All zero.
  Evaluation(Index n_problems, Index n_features);
  /// Makes all of it zero.
  void set_zero();
  /// Throws unless it is of this shape.
  void check_shape(const std::string& argument, Index n_problems, Index n_features) const;
  /// Adds \p share times another one.
  void add(const Evaluation& other, double share = 1.0);
};

/// The largest t * dual - t^2 * square of 0 <= t <= 1: a loss >= 0 lies above t times each of its affine minorants, and
/// so dual variables may be scaled down. Where the dual is positive, so is this.
inline double best_scaled(double dual, double square) {
  return dual > 0.0 && dual < 2.0 * square ? 0.25 * dual * (dual / square) : dual - square;
}

/// Location and scale of the features, which solvers need for centring, step sizes and scaling.
struct Moments {
  Vector mean;      ///< sum_i c_i x_i
  Vector centre;    ///< the mean, or 0 without intercept: centring is exact only when the intercept is free
  Vector variance;  ///< sum_i c_i [ (x_i - centre)^2 + diag(S_i) ] for each feature
  Vector widest;    ///< the largest deviation of each feature in full matrices, where w'S w cancels; empty without
};

/// J(w, b) = lam/2 |w|^2 + sum_i c_i psi(m_i, s_i) of one or several problems, wherever the examples are.
class Objective {
 public:
  virtual ~Objective() = default;

  /// Number of problems, each with a w and a b of its own.
  virtual Index n_problems() const = 0;
  /// Number of features.
  virtual Index n_features() const = 0;
  /// lam.
  virtual double regularisation() const = 0;
  /// Whether b is free; else it is 0.
  virtual bool fit_intercept() const = 0;
  /// psi.
  virtual const std::shared_ptr<const Loss>& loss() const = 0;
  /// Whether no example has a spread: the loss ignores covariances, or there are none.
  virtual bool all_certain() const = 0;

  /// Whether J has kinks at many w, and not only where spreads vanish: with every example, or with many.
  bool kinked_everywhere() const { return loss()->traits().kinked && (all_certain() || loss()->traits().shift != 0.0); }
  /// Whether there are so many kinks that rounding them off takes long.
  virtual bool has_many_kinks() const { return kinked_everywhere(); }

  /// Value and gradient in one pass over the data (spec A.3), with sqrt(s^2 + floor^2) in place of s if the loss has a
  /// kink (spec A.7). \param W n_problems x n_features. \param b n_problems.
  virtual void evaluate(const ConstMatrixRef& W, const ConstVectorRef& b, double floor, Evaluation& out) const = 0;

  /// Location and scale of the features, in one pass.
  virtual Moments moments() const = 0;

  /// The b that minimises J for given W, or J with that floor (spec A.9); 0 without intercept. This one searches by
  /// evaluations. \param guess where to start the search, n_problems.
  virtual Vector exact_intercept(const ConstMatrixRef& W, const ConstVectorRef& guess, double floor) const;

  /// J(0) with the best intercept for each problem.
  virtual Vector value_at_zero() const;
  /// J(0, 0).
  virtual double value_at_origin() const;

  /// lam w - grad_w J for means seen from \p centre, n_problems x n_features (spec A.8, K.0b).
  Matrix dual_coef(const ConstMatrixRef& W, const Evaluation& at, const ConstVectorRef& centre) const {
    return regularisation() * W - at.coef + at.intercept * centre.transpose();
  }

  /// Throws std::invalid_argument unless weights and intercepts have the shapes of the problems.
  void check_point(const ConstMatrixRef& W, const ConstVectorRef& b) const;

  /// The objective as one whose examples are here, row by row, or null.
  virtual const LocalObjective* local() const { return nullptr; }

 protected:
  Objective() = default;
  /// For the kinds alone.
  Objective(const Objective&) = default;
  /// For the kinds alone.
  Objective& operator=(const Objective&) = default;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
