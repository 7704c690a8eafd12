/// \file
/// The examples' side of the interior-point method: their dual variables, and the passes over the data that add up
/// Newton's system and spread its solution back over the examples. Private to interior_point.cpp.
#pragma once

#include "solver/interior_point/cones.hpp"
#include "solver/interior_point/dual.hpp"
#include "halosvm/loss/loss.hpp"
#include "halosvm/objective/local_objective.hpp"
#include "objective/rounding.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace halosvm {

/// Sums over the examples. Vectors have one entry for each feature and a last one for b.
struct NewtonSums {
  Matrix hessian;             ///< lower triangle
  Vector positive;            ///< sum of c (theta y x - phi(q) S w / s) over y = 1; with cones, c (theta y x - F v)
  Vector negative;            ///< the same for y = -1
  Vector beyond;              ///< sum of c F v of what |v| is above phi(q), which is not in the two before
  Vector right;               ///< right-hand side: of the predictor, or the second-order part of the corrector's
  Vector centring;            ///< right-hand side per unit of mu
  double value = 0;           ///< sum of c psi
  double spread2 = 0;         ///< sum of c s^2; in the passes for a step, of c w'S dw; 0 with cones
  double curvature = 0;       ///< sum of c phi(q) / s; 0 with cones
  double theta_positive = 0;  ///< sum of c theta, y = 1
  double theta_negative = 0;
  double dual_positive = 0;  ///< sum of c theta offset, y = 1
  double dual_negative = 0;

  NewtonSums(Index size, bool with_hessian);
  void set_zero();
  void add(const NewtonSums& other);
};

class NewtonSystem {
 public:
  /// For an objective of one problem, with means seen from \p centre.
  /// \param with_cones takes spreads for cones, for which covariances must have factors.
  NewtonSystem(const LocalObjective& objective, Vector centre, bool with_cones);
  ~NewtonSystem();
  NewtonSystem(const NewtonSystem&) = delete;
  NewtonSystem& operator=(const NewtonSystem&) = delete;

  /// sum of c offset y (x - centre), and the weights of the two classes.
  Vector slope_at_zero() const;
  double class_weight(bool positive) const;

  /// Dual variables in the middle of their bounds, with theta by class, for the scores w'(x - centre) + b.
  void start(const Matrix& w, double b, double theta_positive, double theta_negative);

  /// Hessian and gradients at (w, b) and the present dual variables, and the predictor's right-hand side.
  NewtonSums assemble(const Matrix& w, double b);

  /// The sums of the present dual variables with more digits than \ref assemble gives them.
  ExactDual exact(const Matrix& w) const;

  /// The step of theta towards complementarity 0 that goes with a step du of (w, b), and from it the two parts of the
  /// corrector's right-hand side.
  NewtonSums predict(const Matrix& w, const Vector& du);

  /// The step of theta towards complementarity \p mu with a \p share of the predictor's second-order terms; returns
  /// sum c w'S dw (0 with cones).
  double correct(const Matrix& w, const Vector& du, double mu, double share);

  /// The longest step not above \p length that keeps all dual variables >= 0.
  double longest_step(double length) const;

  /// The mean of theta r, (1 - theta) t and, with cones, s kappa - p'v after a step of that length; 0 for now.
  double complementarity(double length) const;

  /// Takes the step.
  void move(double length);

 private:
  struct Memory;
  struct PassMemory;
  template <class Body>
  NewtonSums reduce(bool with_hessian, const Body& body) const;

  double weight(Index row) const { return objective_.weight(row); }
  double sign(Index row) const { return objective_.sign(row, 0); }
  Target target(Index row) const;
  void margins(const Rows& rows, const ConstMatrixMap& X, const Matrix& w, double b, Memory& memory);
  void add_bends(const Rows& rows, const Matrix& w, Memory& memory);
  void add_examples(const Rows& rows, Memory& memory, NewtonSums& sum);
  void add_gradients(const Rows& rows, const ConstMatrixMap& X, Memory& memory, NewtonSums& sum);
  void add_hessian(const Rows& rows, Memory& memory, NewtonSums& sum) const;
  NewtonSums step(const Matrix& w, const Vector& du, bool with_corrector);
  void step_example(Index row, double dm, double cross);
  std::pair<double, double> corrector_parts(Index row);
  void add_slopes(const Rows& rows, const ConstMatrixMap& X, const Matrix& w, Index which, Memory& memory, Vector& sum);

  const LocalObjective& objective_;
  std::shared_ptr<const Loss> loss_;
  bool quantile_;  ///< the law of its dual variables
  Index n_;
  Index d_;
  Index block_;
  Index lane_rows_;
  bool spread_;
  Vector centre_;
  std::vector<Dual> duals_;
  std::unique_ptr<Cones> cones_;
  double cone_weight_;  ///< sum of c times the cones' degrees
  Vector excess_;       ///< m - s q, or m - the bend's excess
  Vector stiffness_;    ///< D = r / theta + t / (1 - theta) + the bend's stiffness
  Vector ratio_;        ///< the bend's; empty when all examples are certain
  Vector dtheta_;       ///< the present step of theta
  Vector predicted_;    ///< the predictor's
  double mu_ = 0.0;     ///< what the present step aims at
  double share_ = 0.0;  ///< of the predictor's second-order terms in it
  bool corrected_ = false;
  std::unique_ptr<PassMemory> memory_;  ///< of all passes
};

}  // namespace halosvm
