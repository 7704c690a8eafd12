// Spreads as pairs of linear constraints: directions of Newton's method come in, steps of the pairs go out.

#include "solver/interior_point/linear_cones.hpp"

#include "gaussians/norms.hpp"
#include "linalg/multiply.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm {

LinearCones::LinearCones(const LocalObjective& problem)
    : Cones(problem),
      common_(std::isinf(problem.data().covariances().spread_norm())),
      pairs_(static_cast<std::size_t>(v_.size())),
      laws_(static_cast<std::size_t>(problem.n_samples())) {}

double LinearCones::start(Index row, double density) {
  if (!active(row)) return 0.0;
  const auto p = of(p_, row);
  const auto r = static_cast<double>(p.size());
  const double largest = p.cwiseAbs().maxCoeff();
  double total = 0.0;
  for (Index j = 0; j < p.size(); ++j) {
    Pair& at = pairs(row)[j];
    at.s = common_ ? largest + 1.0 : std::abs(p(j)) + 1.0 / r;  // scores begin with unit spread
    const double kappa = common_ ? density / r : density;
    const double v = 0.5 * kappa * p(j) / at.s;
    at.above.multiplier = 0.5 * (kappa + v);
    at.below.multiplier = 0.5 * (kappa - v);
    total = common_ ? at.s : total + at.s;
  }
  return total;
}

Bend LinearCones::bend(Index row, const DualLaw& law) {
  if (!active(row)) return {};
  const auto p = of(p_, row);
  auto z = of(u1_, row);
  Law& mine = laws_[static_cast<std::size_t>(row)];
  mine = {law.q, law.density, 0.0};
  for (Index j = 0; j < p.size(); ++j) {
    Pair& at = pairs(row)[j];
    const double least = 1e-13 * at.s;  // rounding must not put a point on the boundary
    at.above.slack = std::max(at.s - p(j), least);
    at.below.slack = std::max(at.s + p(j), least);
    at.above.second = at.below.second = 0.0;
    of(v_, row)(j) = at.above.multiplier - at.below.multiplier;
    z(j) = at.tilt();
    if (common_) {
      z(j) *= at.a();
      mine.total += at.a();
    }
  }
  Bend bend;
  bend.ratio = law.q;
  if (common_) {
    z /= mine.total;
    bend.excess = pairs(row)[0].s * law.q - law.q / mine.total * law.density;
    bend.stiffness = law.stiffness(pairs(row)[0].s) + law.q * law.q / mine.total;
    return bend;
  }
  double s = 0.0;
  for (Index j = 0; j < p.size(); ++j) {
    const Pair& at = pairs(row)[j];
    s += at.s;
    bend.excess += at.s * law.q - law.q / at.a() * law.density;
    bend.stiffness += law.q * law.q / at.a();
  }
  bend.stiffness += law.stiffness(s);
  return bend;
}

void LinearCones::add_gradient(const Rows& rows, const ConstMatrixRef& a, Vector& gradient, Vector& beyond,
                               double* scratch) {
  const Index d = objective_.n_features();
  Vector weights(rows.count);
  for (Index i = 0; i < rows.count; ++i) {
    const auto v = of(v_, rows[i]);
    auto kept = of(push_, rows[i]);
    const double most = law(rows[i]).density;
    if (common_) {
      const double size = norm(v, 1.0);
      kept = size > most ? Vector((most / size) * v) : Vector(v);
    } else {
      kept = v.cwiseMax(-most).cwiseMin(most);
    }
    weights(i) = -a(0, i);
  }
  factors_.add_combined(rows, weights, block(push_, rows), gradient.head(d), scratch);
  block(push_, rows) -= block(v_, rows);
  factors_.add_combined(rows, weights, block(push_, rows), beyond.head(d), scratch);
}

/// For q = 1 sum c A (1 - tilt^2) F_j F_j', for q = infinity sum c (A F_j F_j' - total z z').
void LinearCones::add_curvature(const Rows& rows, MatrixRef z, MatrixRef hessian, double* scratch) {
  for (Index i = 0; i < rows.count; ++i) {
    auto weights = of(push_, rows[i]);
    const double c = active(rows[i]) ? objective_.weight(rows[i]) : 0.0;
    for (Index j = 0; j < weights.size(); ++j) {
      const Pair& at = pairs(rows[i])[j];
      weights(j) = c * (common_ ? at.a() : 4.0 * at.above.stiffness() * at.below.stiffness() / at.a());
    }
    if (common_) z.row(i) *= std::sqrt(c * law(rows[i]).total);
  }
  factors_.add_squares(rows, block(push_, rows), hessian, scratch);
  if (common_) linalg::add_gram(z, hessian, -1.0);
}

double LinearCones::pull(Index row, Index j, double mu, double fixed) const {
  if (!common_) return (pairs(row)[j].target(mu) - fixed) / pairs(row)[j].a();
  double total = -fixed;
  for (Index l = 0; l < factors_.rank(row); ++l) total += pairs(row)[l].target(mu);
  return total / law(row).total;
}

void LinearCones::add_push(const Rows& rows, const ConstMatrixRef& along, bool centring, Vector& sum, double* scratch) {
  for (Index i = 0; i < rows.count; ++i) {
    const Index row = rows[i];
    auto push = of(push_, row);
    push.setZero();
    if (!active(row)) continue;
    const double c = objective_.weight(row);
    push = along(0, i) * of(u1_, row);
    double ds = 0.0;
    for (Index j = 0; j < push.size(); ++j) {
      const Pair& at = pairs(row)[j];
      double dv = 0.0;
      if (centring) {
        const double above = 1.0 / at.above.slack;
        const double below = 1.0 / at.below.slack;
        if (!common_) ds = (above + below) / at.a();
        if (common_ && j == 0) ds = -centring_lift(row) / law(row).q;
        dv = above - below;
      } else {
        if (!common_ || j == 0) ds = pull(row, j, 0.0, law(row).density);
        dv = at.above.target(0.0) - at.below.target(0.0) - (at.above.multiplier - at.below.multiplier);
      }
      push(j) -= c * (dv - at.a() * at.tilt() * ds);
    }
  }
  factors_.add_combined(rows, Vector::Ones(rows.count), block(push_, rows), sum.head(objective_.n_features()), scratch);
}

double LinearCones::centring_lift(Index row) const {
  if (!active(row)) return 0.0;
  double total = 0.0;
  for (Index j = 0; j < factors_.rank(row); ++j) {
    const Pair& at = pairs(row)[j];
    const double push = 1.0 / at.above.slack + 1.0 / at.below.slack;
    total += push / (common_ ? law(row).total : at.a());
  }
  return -law(row).q * total;
}

double LinearCones::lift(Index row, double mu) const {
  if (!active(row)) return 0.0;
  double total = 0.0;
  for (Index j = 0; j < factors_.rank(row); ++j) {
    const Pair& at = pairs(row)[j];
    total += at.target(mu) / (common_ ? law(row).total : at.a());
  }
  return -law(row).q * total;
}

void LinearCones::step(Index row, double dtheta, double cross, double mu) {
  if (!active(row)) return;
  const auto dp = of(dp_, row);
  const double fixed = law(row).density - law(row).q * dtheta;
  double ds = common_ ? pull(row, 0, mu, fixed) + cross : 0.0;
  for (Index j = 0; j < dp.size(); ++j) {
    Pair& at = pairs(row)[j];
    if (!common_) ds = pull(row, j, mu, fixed) + at.tilt() * dp(j);
    const auto move = [mu](Side& side, double dslack) {
      side.dslack = dslack;
      side.dmultiplier = side.target(mu) - side.multiplier - side.stiffness() * dslack;
    };
    move(at.above, ds - dp(j));
    move(at.below, ds + dp(j));
  }
}

void LinearCones::keep_second_order(Index row) {
  if (!active(row)) return;
  for (Index j = 0; j < factors_.rank(row); ++j) {
    Pair& at = pairs(row)[j];
    for (Side* side : {&at.above, &at.below}) side->second = side->dslack * side->dmultiplier;
  }
}

void LinearCones::scale_second_order(double share) {
  for (Pair& at : pairs_) {
    at.above.second *= share;
    at.below.second *= share;
  }
}

double LinearCones::longest_step(Index row, double length) const {
  if (!active(row)) return length;
  for (Index j = 0; j < factors_.rank(row); ++j) {
    const Pair& at = pairs(row)[j];
    for (const Side* side : {&at.above, &at.below}) {
      length = longest(length, side->slack, side->dslack);
      length = longest(length, side->multiplier, side->dmultiplier);
    }
  }
  return length;
}

double LinearCones::complementarity(Index row, double length) const {
  if (!active(row)) return 0.0;
  double total = 0.0;
  for (Index j = 0; j < factors_.rank(row); ++j) {
    const Pair& at = pairs(row)[j];
    for (const Side* side : {&at.above, &at.below}) {
      total += (side->slack + length * side->dslack) * (side->multiplier + length * side->dmultiplier);
    }
  }
  return total;
}

void LinearCones::move(Index row, double length) {
  if (!active(row)) return;
  for (Index j = 0; j < factors_.rank(row); ++j) {
    Pair& at = pairs(row)[j];
    at.s += length * 0.5 * (at.above.dslack + at.below.dslack);
    for (Side* side : {&at.above, &at.below}) side->multiplier += length * side->dmultiplier;
  }
}

}  // namespace halosvm
