/// \file
/// Spreads |F_i'w|_1 and |F_i'w|_infinity that w may leave behind, as pairs of linear constraints. Private to
/// cones.cpp.
///
/// For q = infinity s >= |p_j| for all j; for q = 1 s is a sum of s_j >= |p_j|. The two constraints s_j - p_j >= 0 and
/// s_j + p_j >= 0 have multipliers above and below, of which kappa_j = above + below and v_j = above - below; kappa_j
/// for q = 1, and their sum for q = infinity, is phi(q). With targets r = (mu - second order) / slack of the two,
///
///     dkappa_j = r_above + r_below - kappa_j - A_j (ds_j - tilt_j dp_j),   A_j = above / (s_j - p_j) + below / (s_j +
///     p_j), dv_j = r_above - r_below - v_j - A_j (tilt_j ds_j - dp_j),   A_j tilt_j = the difference of the same two.
#pragma once

#include "solver/interior_point/cones.hpp"

#include <vector>

namespace halosvm {

class LinearCones final : public Cones {
 public:
  explicit LinearCones(const LocalObjective& problem);

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
  double degree(Index row) const override { return active(row) ? 2.0 * static_cast<double>(factors_.rank(row)) : 0.0; }
  void move(Index row, double length) override;

 private:
  /// One constraint: its slack, its multiplier, and what a step does to them.
  struct Side {
    double slack = 1, multiplier = 1;
    double dslack = 0, dmultiplier = 0;
    double second = 0;  ///< of the second-order terms
    double stiffness() const { return multiplier / slack; }
    double target(double mu) const { return (mu - second) / slack; }
  };
  struct Pair {
    Side above, below;  ///< s - p >= 0 and s + p >= 0
    double s = 1;
    double a() const { return above.stiffness() + below.stiffness(); }
    double tilt() const { return (above.stiffness() - below.stiffness()) / a(); }
    double kappa() const { return above.multiplier + below.multiplier; }
    double target(double mu) const { return above.target(mu) + below.target(mu); }
  };
  struct Law {
    double q = 0, density = 0;
    double total = 1;  ///< for q = infinity, sum of A_j
  };

  Pair* pairs(Index row) { return pairs_.data() + factors_.first_column(row); }
  const Pair* pairs(Index row) const { return pairs_.data() + factors_.first_column(row); }
  const Law& law(Index row) const { return laws_[static_cast<std::size_t>(row)]; }
  /// ds_j without dp and dtheta is \p pull, for targets with or without what depends on no mu.
  double pull(Index row, Index j, double mu, double fixed) const;

  bool common_;  ///< q = infinity: one s for all pairs of a row
  std::vector<Pair> pairs_;
  std::vector<Law> laws_;
};

}  // namespace halosvm
