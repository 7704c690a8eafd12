/// \file
/// Spreads |F_i'w| that w may leave behind, as second-order cones. Private to cones.cpp.
///
/// The conditions of cones.hpp are
///
///     kappa_i = phi(q_i),   (s_i, p_i) o (kappa_i, -v_i) = (mu, 0)
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

#include "solver/interior_point/cones.hpp"

#include <vector>

namespace halosvm {

class QuadraticCones final : public Cones {
 public:
  explicit QuadraticCones(const LocalObjective& problem);

  double start(Index row, double density) override;
  Bend bend(Index row, const DualLaw& law) override;
  void add_gradient(const Rows& rows, const ConstMatrixRef& a, Vector& gradient, Vector& beyond,
                    double* scratch) override;
  void add_curvature(const Rows& rows, MatrixRef z, MatrixRef hessian, double* scratch) override;
  void add_push(const Rows& rows, const ConstMatrixRef& along, bool centring, Vector& sum, double* scratch) override;
  double lift(Index row, double mu) const override;
  double centring_lift(Index row) const override;
  void step(Index row, double dtheta, double cross, double mu) override;
  void keep_second_order(Index row) override;
  void scale_second_order(double share) override;
  double longest_step(Index row, double length) const override;
  double complementarity(Index row, double length) const override;
  double degree(Index row) const override { return active(row) ? 1.0 : 0.0; }
  void move(Index row, double length) override;

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
  const Cone& cone(Index row) const { return cones_[static_cast<std::size_t>(row)]; }
  Cone& cone(Index row) { return cones_[static_cast<std::size_t>(row)]; }

  std::vector<Cone> cones_;
  Vector dv_;
  Vector second_;  ///< the other entries of what the second-order terms add to g
};

}  // namespace halosvm
