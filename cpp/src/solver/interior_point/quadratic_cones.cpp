// Spreads as second-order cones: directions of Newton's method come in, steps of the cones go out.

#include "solver/interior_point/quadratic_cones.hpp"

#include "linalg/multiply.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm {
namespace {

/// sqrt(a^2 - b^2) for a >= b >= 0.
double root_of_difference(double a, double b) { return std::sqrt(a - b) * std::sqrt(a + b); }

/// \p a, or a little more than \p b: rounding must not put a point on the boundary of its cone.
double inside(double a, double b) { return std::max(a, b * (1.0 + 1e-13)); }

/// The smallest t > 0 at which (a + t da, b + t db) leaves the cone, or infinity.
double exit_of_cone(double a, double da, const ConstVectorRef& b, const ConstVectorRef& db) {
  const double size = b.norm();
  const double square = da * da - db.squaredNorm();  // square t^2 + 2 slope t + constant >= 0 inside
  const double slope = a * da - b.dot(db);
  const double constant = (a - size) * (a + size);
  const double root = std::sqrt(std::max(0.0, slope * slope - square * constant));  // negative by rounding alone
  if (slope < 0.0) return constant / (root - slope);
  return square < 0.0 ? (slope + root) / -square : infinity;
}

}  // namespace

QuadraticCones::QuadraticCones(const LocalObjective& problem)
    : Cones(problem), cones_(static_cast<std::size_t>(problem.n_samples())), dv_(columns()), second_(columns()) {}

double QuadraticCones::start(Index row, double density) {
  if (!active(row)) return 0.0;
  Cone& at = cone(row);
  at.s = of(p_, row).norm() + 1.0;  // scores begin with unit spread
  at.kappa = density;
  of(v_, row) = (0.5 * density / at.s) * of(p_, row);
  return at.s;
}

Bend QuadraticCones::bend(Index row, const DualLaw& law) {
  if (!active(row)) return {};
  Cone& at = cone(row);
  const auto p = of(p_, row);
  const auto v = of(v_, row);
  const double p_size = p.norm();
  const double v_size = v.norm();
  at.s = inside(at.s, p_size);
  at.kappa = inside(at.kappa, v_size);
  const double q = law.q;
  at.q = q;
  at.density = law.density;
  at.s_root = root_of_difference(at.s, p_size);
  at.kappa_root = root_of_difference(at.kappa, v_size);
  const double cosine = (at.s / at.s_root) * (at.kappa / at.kappa_root) - (p / at.s_root).dot(v / at.kappa_root);
  at.gamma = std::sqrt(0.5 + 0.5 * std::max(1.0, cosine));
  of(u1_, row) = (p / at.s_root + v / at.kappa_root) / (2.0 * at.gamma);
  at.u0 = std::sqrt(1.0 + of(u1_, row).squaredNorm());
  at.second = 0.0;
  of(second_, row).setZero();

  Bend bend;
  const double softness = q * at.eta2() / at.stretch();
  bend.excess = at.s * q - softness * law.density;
  bend.stiffness = law.stiffness(at.s) + q * softness;
  bend.ratio = q * at.tilt();
  return bend;
}

void QuadraticCones::add_gradient(const Rows& rows, const ConstMatrixRef& a, Vector& gradient, Vector& beyond,
                                  double* scratch) {
  Vector kept(rows.count);
  Vector rest(rows.count);
  for (Index i = 0; i < rows.count; ++i) {
    const double size = of(v_, rows[i]).norm();
    const double cut = size > cone(rows[i]).density ? cone(rows[i]).density / size : 1.0;
    kept(i) = -a(0, i) * cut;
    rest(i) = a(0, i) * (1.0 - cut);
  }
  factors_.add_combined(rows, kept, block(v_, rows), gradient.head(objective_.n_features()), scratch);
  factors_.add_combined(rows, rest, block(v_, rows), beyond.head(objective_.n_features()), scratch);
}

/// H += sum c curvature (S - sharpness^2 z z'), curvature = 1 / eta^2 and sharpness^2 = 2 / stretch.
void QuadraticCones::add_curvature(const Rows& rows, MatrixRef z, MatrixRef hessian, double* scratch) {
  Vector curvature(rows.count);
  for (Index i = 0; i < rows.count; ++i) {
    const Cone& at = cone(rows[i]);
    curvature(i) = active(rows[i]) ? objective_.weight(rows[i]) / at.eta2() : 0.0;
    z.row(i) *= std::sqrt(2.0 * curvature(i) / at.stretch());
  }
  objective_.data().covariances().add_weighted_matrices(rows, curvature, hessian, scratch);
  linalg::add_gram(z, hessian, -1.0);
}

/// The step without du and dtheta is dv = -(g_1 + tilt (g_0 + kappa - phi(q)) u1).
void QuadraticCones::add_push(const Rows& rows, const ConstMatrixRef& along, bool centring, Vector& sum,
                              double* scratch) {
  for (Index i = 0; i < rows.count; ++i) {
    const Index row = rows[i];
    auto push = of(push_, row);
    push.setZero();
    if (!active(row)) continue;
    const Cone& at = cone(row);
    const double c = objective_.weight(row);
    if (centring) {
      const double scale = c / at.s_root / at.s_root;
      push = (along(0, i) + scale * at.tilt() * at.s) * of(u1_, row) - scale * of(p_, row);
    } else {
      push = (along(0, i) + c * at.tilt() * (at.second - at.density)) * of(u1_, row);
      push += c * (of(v_, row) + of(second_, row));
    }
  }
  factors_.add_combined(rows, Vector::Ones(rows.count), block(push_, rows), sum.head(objective_.n_features()), scratch);
}

double QuadraticCones::centring_lift(Index row) const {
  if (!active(row)) return 0.0;
  const Cone& at = cone(row);
  return -at.q * (at.eta2() / at.stretch()) * (at.s / at.s_root / at.s_root);
}

double QuadraticCones::lift(Index row, double mu) const {
  if (!active(row)) return 0.0;
  const Cone& at = cone(row);
  return -at.q * (at.eta2() / at.stretch()) * at.second + mu * centring_lift(row);
}

void QuadraticCones::step(Index row, double dtheta, double cross, double mu) {
  if (!active(row)) return;
  Cone& at = cone(row);
  const double scale = mu / at.s_root / at.s_root;
  const double g0 = at.second - at.density + scale * at.s;  // g_0 + kappa - phi(q)
  at.ds = at.eta2() / at.stretch() * (g0 + at.q * dtheta) + at.tilt() * cross;
  at.dkappa = at.density - at.kappa - at.q * dtheta;
  auto dv = of(dv_, row);
  dv = (of(dp_, row) + 2.0 * (cross - at.u0 * at.ds) * of(u1_, row)) / at.eta2();
  dv -= of(v_, row) + of(second_, row) - scale * of(p_, row);
}

/// g loses W^-1 (l \ ((W^-1 (ds, dp)) o (W (dkappa, -dv)))).
void QuadraticCones::keep_second_order(Index row) {
  if (!active(row)) return;
  Cone& at = cone(row);
  const auto p = of(p_, row);
  const auto v = of(v_, row);
  const auto u1 = of(u1_, row);
  const auto dp = of(dp_, row);
  const auto dv = of(dv_, row);
  auto g = of(second_, row);
  const double u_dp = u1.dot(dp);
  const double u_dv = u1.dot(dv);
  const double turn_x = u_dp / (1.0 + at.u0) - at.ds;
  const double turn_z = at.dkappa - u_dv / (1.0 + at.u0);
  const double eta = std::sqrt(at.eta2());
  const double x0 = (at.u0 * at.ds - u_dp) / eta;
  const double z0 = (at.u0 * at.dkappa - u_dv) * eta;
  const double product0 = x0 * z0 + (dp + turn_x * u1).dot(turn_z * u1 - dv);
  g = (x0 * eta) * (turn_z * u1 - dv) + (z0 / eta) * (dp + turn_x * u1);

  const double size = std::sqrt(at.s_root) * std::sqrt(at.kappa_root);  // sqrt(l_0^2 - |l_1|^2)
  const double x_bar = at.s / at.s_root;
  const double z_bar = at.kappa / at.kappa_root;
  const double l0 = size * at.gamma;
  const double by_p = size * (at.gamma + z_bar) / (x_bar + z_bar + 2.0 * at.gamma) / at.s_root;
  const double by_v = size * (at.gamma + x_bar) / (x_bar + z_bar + 2.0 * at.gamma) / at.kappa_root;
  const double y0 = (l0 * product0 - by_p * p.dot(g) + by_v * v.dot(g)) / (size * size);
  g = (g - y0 * (by_p * p - by_v * v)) / l0;

  const double u_y = u1.dot(g);
  at.second = (u_y - at.u0 * y0) / eta;
  g = (-g + (y0 - u_y / (1.0 + at.u0)) * u1) / eta;
}

void QuadraticCones::scale_second_order(double share) {
  second_ *= share;
  for (Cone& at : cones_) at.second *= share;
}

double QuadraticCones::longest_step(Index row, double length) const {
  if (!active(row)) return length;
  const Cone& at = cone(row);
  length = std::min(length, exit_of_cone(at.s, at.ds, of(p_, row), of(dp_, row)));
  return std::min(length, exit_of_cone(at.kappa, at.dkappa, of(v_, row), of(dv_, row)));
}

double QuadraticCones::complementarity(Index row, double length) const {
  if (!active(row)) return 0.0;
  const Cone& at = cone(row);
  return (at.s + length * at.ds) * (at.kappa + length * at.dkappa) -
         (of(p_, row) + length * of(dp_, row)).dot(of(v_, row) + length * of(dv_, row));
}

void QuadraticCones::move(Index row, double length) {
  if (!active(row)) return;
  Cone& at = cone(row);
  at.s += length * at.ds;
  at.kappa += length * at.dkappa;
  of(v_, row) += length * of(dv_, row);
}

}  // namespace halosvm
