/// \file
/// Spreads s_i = |F_i'w|_q that w may leave behind, as variables of their own. Private to newton_system.cpp.
///
/// Where an optimum has F_i'w = 0 (or, for q = 1 and infinity, some entry of it at a kink of the norm), s_i has a kink.
/// So s_i becomes a variable with s_i >= |p_i|_q, p_i = F_i'w, and psi(m, s) = max over theta and |v|_p <= phi(q) of
/// theta m + v'p gets a dual variable v_i of r_i numbers (|v| <= theta for psi = max(0, m + s); phi(q) stands for
/// either below). The conditions of the optimum that concern them are
///
///     lam w = sum_i c_i (theta_i y_i x_i - F_i v_i)
///
/// and complementarity of s_i, p_i with kappa_i, v_i, which each kind of cones has in its own way.
#pragma once

#include "halosvm/objective/local_objective.hpp"
#include "solver/interior_point/dual.hpp"

#include <memory>

namespace halosvm {

/// How the spread of an example enters Newton's system. After ds and dv (or s = |p| and v = phi(q) p / s themselves)
/// are eliminated, with h = dm/du - ratio z for the row z of \ref Cones::products (or S w),
///
///     D dtheta = h'du + m - excess + ...,   D = stiffness + ...,
///     the Hessian is sum c [h h' / D + curvature (S - (sharpness z) (sharpness z)')];
///
/// cones have their own matrix in place of the last.
struct Bend {
  double excess = 0;
  double stiffness = 0;
  double ratio = 0;
  double curvature = 0;
  double sharpness = 0;
};

class Cones {
 public:
  /// Of the kind that the spreads of the problem are of.
  static std::unique_ptr<Cones> make(const LocalObjective& problem);

  virtual ~Cones() = default;
  Cones(const Cones&) = delete;
  Cones& operator=(const Cones&) = delete;

  /// Sets p, and s(i) = |p_i|_q.
  void look(const Rows& rows, const ConstMatrixRef& w, MatrixRef s, double* scratch);

  /// Begins well inside all cones, for kappa = phi(q) = \p density. Returns s.
  virtual double start(Index row, double density) = 0;

  /// The scaling at the present point, for the predictor.
  virtual Bend bend(Index row, const DualLaw& law) = 0;

  /// The rows z, in the first rows of \p out.
  void products(const Rows& rows, Matrix& out, double* scratch) const;

  /// Sums have an entry for each feature and a last one for b, which stays.
  /// gradient -= sum_i a(i) F_i v_i with v_i cut to |v_i|_p <= phi(q_i), so that it is feasible; beyond += the rest.
  virtual void add_gradient(const Rows& rows, const ConstMatrixRef& a, Vector& gradient, Vector& beyond,
                            double* scratch) = 0;

  /// The spreads' own part of the Hessian, into its lower triangle. \p z has the rows z, and is memory after that.
  virtual void add_curvature(const Rows& rows, MatrixRef z, MatrixRef hessian, double* scratch) = 0;

  /// sum += sum_i (along(i) z_i - c_i times F_i times the part of dv that depends on no step), for the target of the
  /// present step without mu, or (\p centring) per unit of mu.
  virtual void add_push(const Rows& rows, const ConstMatrixRef& along, bool centring, Vector& sum, double* scratch) = 0;

  /// Sets dp = F'dw, and cross(i) = z_i'dw.
  void project(const Rows& rows, const ConstMatrixRef& dw, MatrixRef cross, double* scratch);

  /// What the second-order terms and \p mu add to m - excess.
  virtual double lift(Index row, double mu) const = 0;
  /// The same per unit of mu alone.
  virtual double centring_lift(Index row) const = 0;

  /// From dtheta and cross: the steps of all variables towards complementarity \p mu.
  virtual void step(Index row, double dtheta, double cross, double mu) = 0;

  /// Keeps the second-order terms of the present step for the corrector, which may want a share of them alone.
  virtual void keep_second_order(Index row) = 0;
  virtual void scale_second_order(double share) = 0;

  /// The longest step not above \p length that stays in all cones.
  virtual double longest_step(Index row, double length) const = 0;
  /// s kappa - p'v after a step of that length, and the number of mu that it should be.
  virtual double complementarity(Index row, double length) const = 0;
  virtual double degree(Index row) const = 0;
  virtual void move(Index row, double length) = 0;

  /// v.
  ConstVectorMap dual(Index row) const { return of(v_, row); }

  /// Whether the row has a weight and a factor.
  bool active(Index row) const { return factors_.rank(row) > 0 && objective_.weight(row) > 0.0; }

 protected:
  explicit Cones(const LocalObjective& problem);

  VectorMap of(Vector& flat, Index row) { return {flat.data() + factors_.first_column(row), factors_.rank(row)}; }
  ConstVectorMap of(const Vector& flat, Index row) const {
    return {flat.data() + factors_.first_column(row), factors_.rank(row)};
  }
  VectorMap block(Vector& flat, const Rows& rows) const;
  ConstVectorMap block(const Vector& flat, const Rows& rows) const;
  /// Numbers for all columns of all factors.
  Vector columns() const { return Vector::Zero(total_rank(factors_, objective_.n_samples())); }

  const LocalObjective& objective_;
  const Factors& factors_;
  Vector p_, dp_;
  Vector v_;
  Vector u1_;    ///< z_i = F_i u1_i
  Vector push_;  ///< memory
};

}  // namespace halosvm
