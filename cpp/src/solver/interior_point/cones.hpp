/// \file
/// Spreads s_i = |F_i'w| that w may leave behind, as second-order cones. Private to newton_system.cpp.
///
/// Where an optimum has F_i'w = 0, s_i has a kink and S_i w / s_i is no function of w. So s_i becomes a variable of its
/// own with s_i >= |p_i|, p_i = F_i'w, and psi(m, s) = max over theta and |v| <= phi(q) of theta m + v'p gets a dual
/// variable v_i of r_i numbers (|v| <= theta for psi = max(0, m + s); phi(q) stands for either below). The conditions
/// of the optimum that concern them are
///
///     lam w = sum_i c_i (theta_i y_i x_i - F_i v_i),   kappa_i = phi(q_i),   (s_i, p_i) o (kappa_i, -v_i) = (mu, 0)
///
/// with (a, b) o (c, d) = (ac + b'd, ad + cb), both pairs inside the cone {(a, b): a >= |b|}. Newton's method is
/// applied to the last in the scaling of Nesterov and Todd: with the symmetric W that has W (kappa, -v) = W^-1 (s, p) =
/// l,
///
///     (dkappa, -dv) = g - W^-2 (ds, dp),   g = W^-1 (l \ ((mu, 0) - second order)) - (kappa, -v),
///     W^-2 = (2 J u u'J - J) / eta^2,   J = diag(1, -1, ..., -1),   u = (u0, u1), u0^2 - |u1|^2 = 1
///
/// (L. Vandenberghe, The CVXOPT linear and quadratic cone program solvers, 2010, sections 3 to 5; l \ is the inverse of
/// l o). Because phi(q) is concave in theta, linear steps never bring kappa below it.
#pragma once

#include "halosvm/objective/local_objective.hpp"
#include "solver/interior_point/dual.hpp"

#include <vector>

namespace halosvm {

/// How the spread of an example enters Newton's system. After ds and dv (or s = |p| and v = phi(q) p / s themselves)
/// are eliminated, with h = dm/du - ratio z for the row z that is F u1 (or S w),
///
///     D dtheta = h'du + m - excess + ...,   D = stiffness + ...,
///     the Hessian is sum c [h h' / D + curvature (S - (sharpness z) (sharpness z)')].
struct Bend {
  double excess = 0;
  double stiffness = 0;
  double ratio = 0;
  double curvature = 0;
  double sharpness = 0;
};

class Cones {
 public:
  /// \param objective one problem, whose covariances have factors.
  explicit Cones(const LocalObjective& objective);

  /// Sets p, and s(i) = |p_i|.
  void look(const Rows& rows, const ConstMatrixRef& w, MatrixRef s, double* scratch);

  /// Begins well inside both cones, for kappa = phi(q) = \p density. Returns s.
  double start(Index row, double density);

  /// The scaling at the present point, for the predictor.
  Bend bend(Index row, const DualLaw& law);

  /// out(i, :) = F_i u1_i, in the first rows of \p out.
  void products(const Rows& rows, Matrix& out, double* scratch) const;

  /// Sums have an entry for each feature and a last one for b, which stays.
  /// gradient -= sum_i a(i) F_i v_i with v_i cut to |v_i| <= phi(q_i), so that it is feasible; beyond += the rest.
  void add_gradient(const Rows& rows, const ConstMatrixRef& a, Vector& gradient, Vector& beyond, double* scratch) const;

  /// sum += sum_i F_i (along(i) u1_i + c_i times the part of dv that depends on no step), for the target of the
  /// present step without mu, or (\p centring) per unit of mu.
  void add_push(const Rows& rows, const ConstMatrixRef& along, bool centring, Vector& sum, double* scratch);

  /// Sets dp = F'dw, and cross(i) = u1_i'dp_i.
  void project(const Rows& rows, const ConstMatrixRef& dw, MatrixRef cross, double* scratch);

  /// What the second-order terms and \p mu add to m - excess.
  double lift(Index row, double mu) const;
  /// The same per unit of mu alone.
  double centring_lift(Index row) const;

  /// From dtheta and cross: ds, dkappa and dv towards complementarity \p mu.
  void step(Index row, double dtheta, double cross, double mu);

  /// Keeps the second-order terms of the present step for the corrector, which may want a share of them alone.
  void keep_second_order(Index row);
  void scale_second_order(double share);

  /// The longest step not above \p length that stays in both cones.
  double longest_step(Index row, double length) const;
  /// s kappa - p'v after a step of that length.
  double complementarity(Index row, double length) const;
  void move(Index row, double length);

  /// v.
  ConstVectorMap dual(Index row) const { return of(v_, row); }

  /// Whether the row has a weight and a factor.
  bool active(Index row) const { return factors_.rank(row) > 0 && objective_.weight(row) > 0.0; }

 private:
  struct Cone {
    double s = 1, kappa = 1;    ///< the variables
    double ds = 0, dkappa = 0;  ///< their steps
    double q = 0, density = 0;  ///< phi(q)
    double s_root = 1;          ///< sqrt(s^2 - |p|^2)
    double kappa_root = 1;      ///< sqrt(kappa^2 - |v|^2)
    double gamma = 1, u0 = 1;   ///< l_0 / |l|, and u
    double second = 0;          ///< first entry of what the second-order terms add to g
    double eta2() const { return s_root / kappa_root; }
    double stretch() const { return 2.0 * u0 * u0 - 1.0; }  ///< eta^2 times the first entry of W^-2
    double tilt() const { return 2.0 * u0 / stretch(); }
  };
  VectorMap of(Vector& flat, Index row) { return {flat.data() + factors_.first_column(row), factors_.rank(row)}; }
  ConstVectorMap of(const Vector& flat, Index row) const {
    return {flat.data() + factors_.first_column(row), factors_.rank(row)};
  }
  VectorMap block(Vector& flat, const Rows& rows) const;
  ConstVectorMap block(const Vector& flat, const Rows& rows) const;
  const Cone& cone(Index row) const { return cones_[static_cast<std::size_t>(row)]; }
  Cone& cone(Index row) { return cones_[static_cast<std::size_t>(row)]; }

  const LocalObjective& objective_;
  const Factors& factors_;
  std::vector<Cone> cones_;
  Vector p_, v_, u1_;  ///< r_i numbers for each example
  Vector dp_, dv_;
  Vector second_;  ///< the other entries of what the second-order terms add to g
  Vector push_;    ///< memory for add_push
};

}  // namespace halosvm
