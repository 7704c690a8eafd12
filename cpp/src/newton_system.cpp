#include "newton_system.hpp"

#include "halosvm/normal.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halosvm {
namespace {

/// q = Phi^-1(theta) and phi(q).
struct Quantile {
  double q;
  double density;
};

Quantile quantile_of(const Dual& dual) {
  const bool lower = dual.theta < 0.5;
  const double t = normal_upper_quantile(std::max(lower ? dual.theta : dual.rest, 1e-300));
  return {lower ? -t : t, normal_tail(t).density};
}

/// Steps of the two multipliers that go with a step of theta.
double low_step(const Dual& at, const Target& target, double dtheta) {
  return (target.low - at.theta * at.low - at.low * dtheta) / at.theta;
}
double high_step(const Dual& at, const Target& target, double dtheta) {
  return (target.high - at.rest * at.high + at.high * dtheta) / at.rest;
}

/// The longest step not above \p length that keeps value + step * change >= 0.
double longest(double length, double value, double change) {
  return change < 0.0 ? std::min(length, -value / change) : length;
}

/// Rows in a block: enough for the sum of outer products to run at speed, and still in the cache.
Index rows_of_block(Index n_features) { return std::clamp<Index>(262144 / (8 * (n_features + 1)), 16, 512); }

/// Lanes are fixed by the data, so that sums do not depend on the number of threads; each holds a Hessian.
Index lanes(Index n_features) {
  constexpr Index budget = Index{1} << 27;
  return std::clamp<Index>(budget / (8 * (n_features + 1) * (n_features + 1)), 2, 16);
}

}  // namespace

NewtonSums::NewtonSums(Index size, bool with_hessian)
    : hessian(with_hessian ? Matrix::Zero(size, size) : Matrix()),
      positive(Vector::Zero(size)),
      negative(Vector::Zero(size)),
      right(Vector::Zero(size)),
      centring(Vector::Zero(size)) {}

void NewtonSums::add(const NewtonSums& other) {
  hessian += other.hessian;
  positive += other.positive;
  negative += other.negative;
  right += other.right;
  centring += other.centring;
  value += other.value;
  spread2 += other.spread2;
  theta_positive += other.theta_positive;
  theta_negative += other.theta_negative;
}

/// Memory of one thread for one block.
struct NewtonSystem::Memory {
  Memory(const Objective& objective, Index block)
      : means(static_cast<std::size_t>(block * objective.n_features())),
        scratch(static_cast<std::size_t>(objective.data().covariances().scratch_size({block, 1}))),
        outer(block, objective.n_features() + 1),
        products(block, objective.uses_spread() ? objective.n_features() : 0),
        m(1, block),
        s(1, block),
        values(3, block),
        coefficients(3, block) {}

  std::vector<double> means;
  std::vector<double> scratch;
  Matrix outer;         ///< rows g, the gradients of m - q s
  Matrix products;      ///< rows S w
  Matrix m;             ///< margin deficits, or their changes
  Matrix s;             ///< spreads, or w'S dw
  Matrix values;        ///< the loss and its slopes
  Matrix coefficients;  ///< factors of rows in sums
};

NewtonSystem::NewtonSystem(const Objective& objective, Vector centre)
    : objective_(objective),
      n_(objective.n_samples()),
      d_(objective.n_features()),
      block_(rows_of_block(d_)),
      lane_rows_(std::max<Index>(block_, (n_ + lanes(d_) - 1) / lanes(d_))),
      spread_(!objective.all_certain()),
      centre_(std::move(centre)),
      duals_(static_cast<std::size_t>(n_)),
      excess_(n_),
      stiffness_(n_),
      ratio_(spread_ ? n_ : 0),
      dtheta_(n_),
      predicted_(n_) {}

/// Runs body(rows, X, memory, sums) over all blocks and returns the sums in the order of the lanes.
template <class Body>
NewtonSums NewtonSystem::reduce(bool with_hessian, const Body& body) const {
  const Index n_lanes = (n_ + lane_rows_ - 1) / lane_rows_;
  std::vector<NewtonSums> partial(static_cast<std::size_t>(n_lanes), NewtonSums(d_ + 1, with_hessian));
  std::vector<Memory> memory(static_cast<std::size_t>(thread_count(n_lanes, objective_.execution())),
                             Memory(objective_, block_));
  run_tasks(n_lanes, objective_.execution(), [&](Index lane, int slot, Checkpoint& checkpoint) {
    Memory& mine = memory[static_cast<std::size_t>(slot)];
    const Index end = std::min(n_, (lane + 1) * lane_rows_);
    for (Index begin = lane * lane_rows_; begin < end; begin += block_) {
      checkpoint();
      const Rows rows{begin, std::min(block_, end - begin)};
      body(rows, objective_.data().means().block(rows, mine.means.data()), mine,
           partial[static_cast<std::size_t>(lane)]);
    }
  });
  NewtonSums total = std::move(partial.front());
  for (std::size_t lane = 1; lane < partial.size(); ++lane) total.add(partial[lane]);
  return total;
}

Vector NewtonSystem::slope_at_zero() const {
  const NewtonSums sums =
      reduce(false, [&](const Rows& rows, const ConstMatrixMap& X, Memory& memory, NewtonSums& sum) {
        auto a = memory.coefficients.row(0).head(rows.count);
        for (Index i = 0; i < rows.count; ++i) a(i) = weight(rows[i]) * sign(rows[i]);
        sum.right.head(d_).noalias() += X.transpose() * a.transpose();
      });
  return sums.right.head(d_) - (class_weight(true) - class_weight(false)) * centre_;
}

double NewtonSystem::class_weight(bool positive) const {
  double total = 0.0;
  for (Index i = 0; i < n_; ++i) total += (sign(i) > 0.0) == positive ? weight(i) : 0.0;
  return total;
}

void NewtonSystem::start(const Matrix& w, double b, double theta_positive, double theta_negative) {
  reduce(false, [&](const Rows& rows, const ConstMatrixMap& X, Memory& memory, NewtonSums& /*sum*/) {
    margins(rows, X, w, b, memory);
    for (Index i = 0; i < rows.count; ++i) {
      const double theta = sign(rows[i]) > 0.0 ? theta_positive : theta_negative;
      const double s = memory.s(0, i);
      Dual dual{theta, 1.0 - theta, 0.0, 0.0};
      const double excess = memory.m(0, i) - (s > 0.0 ? s * quantile_of(dual).q : 0.0);
      dual.high = std::max(excess, 0.0) + 1.0;
      dual.low = dual.high - excess;
      duals_[static_cast<std::size_t>(rows[i])] = dual;
    }
  });
}

/// Fills memory.m and memory.s.
void NewtonSystem::margins(const Rows& rows, const ConstMatrixMap& X, const Matrix& w, double b, Memory& memory) const {
  auto m = memory.m.leftCols(rows.count);
  auto s = memory.s.leftCols(rows.count);
  multiply(X, w, m);
  const double shift = b - w.row(0).dot(centre_);
  for (Index i = 0; i < rows.count; ++i) m(0, i) = 1.0 - sign(rows[i]) * (m(0, i) + shift);
  if (spread_) {
    objective_.data().covariances().bilinear(rows, w, w, s, memory.scratch.data());
    s = s.cwiseMax(0.0).cwiseSqrt();
    s = (s.array() < smallest_spread).select(0.0, s);
  } else {
    s.setZero();
  }
}

NewtonSums NewtonSystem::assemble(const Matrix& w, double b) {
  return reduce(true, [&](const Rows& rows, const ConstMatrixMap& X, Memory& memory, NewtonSums& sum) {
    margins(rows, X, w, b, memory);
    auto outer = memory.outer.topRows(rows.count);
    outer.leftCols(d_) = X.rowwise() - centre_.transpose();
    outer.col(d_).setOnes();
    if (spread_) {
      objective_.data().covariances().products(rows, w.row(0).transpose(), memory.products.topRows(rows.count),
                                               memory.scratch.data());
    }
    loss_->first(rows.count, memory.m.data(), memory.s.data(), memory.values.row(0).data(), memory.values.row(1).data(),
                 memory.values.row(2).data());
    add_examples(rows, memory, sum);
    add_gradients(rows, X, memory, sum);
    add_hessian(rows, memory, sum);
  });
}

/// What each example needs for the steps to come; turns memory.outer into the g, and leaves c theta y, c phi(q) / s and
/// c / D in the three rows of memory.coefficients.
void NewtonSystem::add_examples(const Rows& rows, Memory& memory, NewtonSums& sum) {
  for (Index i = 0; i < rows.count; ++i) {
    const Index row = rows[i];
    const Dual& dual = duals_[static_cast<std::size_t>(row)];
    const double c = weight(row);
    const double y = sign(row);
    const double s = memory.s(0, i);
    const bool uncertain = s > 0.0;
    const Quantile at = uncertain ? quantile_of(dual) : Quantile{0.0, 0.0};
    sum.value += c * memory.values(0, i);
    sum.spread2 += c * s * s;
    (y > 0.0 ? sum.theta_positive : sum.theta_negative) += c * dual.theta;

    excess_(row) = memory.m(0, i) - s * at.q;
    stiffness_(row) =
        dual.low / dual.theta + dual.high / dual.rest + (uncertain ? s / std::max(at.density, 1e-300) : 0.0);
    memory.outer.row(i) *= -y;
    if (spread_) {
      ratio_(row) = uncertain ? at.q / s : 0.0;
      memory.outer.row(i).head(d_) -= ratio_(row) * memory.products.row(i);
    }
    memory.coefficients(0, i) = c * dual.theta * y;
    memory.coefficients(1, i) = uncertain ? c * at.density / s : 0.0;
    memory.coefficients(2, i) = c / stiffness_(row);
  }
}

/// The two classes' parts of the gradient, from the means themselves, and the predictor's right-hand side.
void NewtonSystem::add_gradients(const Rows& rows, const ConstMatrixMap& X, Memory& memory, NewtonSums& sum) const {
  const Index count = rows.count;
  auto masked = memory.values.row(0).head(count);
  for (const bool positive : {true, false}) {
    Vector& target = positive ? sum.positive : sum.negative;
    const auto mask = [&](Index which) {
      for (Index i = 0; i < count; ++i) {
        masked(i) = (sign(rows[i]) > 0.0) == positive ? memory.coefficients(which, i) : 0.0;
      }
    };
    mask(0);
    const double total = masked.sum();
    target.head(d_).noalias() += X.transpose() * masked.transpose();
    target.head(d_) -= total * centre_;
    target(d_) += total;
    if (!spread_) continue;
    mask(1);
    target.head(d_).noalias() -= memory.products.topRows(count).transpose() * masked.transpose();
  }
  for (Index i = 0; i < count; ++i) masked(i) = memory.coefficients(2, i) * excess_(rows[i]);
  sum.right.noalias() -= memory.outer.topRows(count).transpose() * masked.transpose();
}

/// H += sum c g g' / D + sum c phi(q) / s (S - S w w'S / s^2).
void NewtonSystem::add_hessian(const Rows& rows, Memory& memory, NewtonSums& sum) const {
  const Index count = rows.count;
  auto outer = memory.outer.topRows(count);
  for (Index i = 0; i < count; ++i) outer.row(i) *= std::sqrt(memory.coefficients(2, i));
  sum.hessian.selfadjointView<Eigen::Lower>().rankUpdate(outer.transpose());
  if (!spread_) return;
  const Vector curvature = memory.coefficients.row(1).head(count).transpose();
  auto corner = sum.hessian.topLeftCorner(d_, d_);
  objective_.data().covariances().add_weighted_matrices(rows, curvature, corner, memory.scratch.data());
  auto products = memory.products.topRows(count);
  for (Index i = 0; i < count; ++i) {
    products.row(i) *= curvature(i) > 0.0 ? std::sqrt(curvature(i)) / memory.s(0, i) : 0.0;
  }
  corner.selfadjointView<Eigen::Lower>().rankUpdate(products.transpose(), -1.0);
}

Target NewtonSystem::target(Index row) const {
  if (!corrected_) return {0.0, 0.0};
  const Dual& dual = duals_[static_cast<std::size_t>(row)];
  const double step = predicted_(row);
  return {mu_ - step * low_step(dual, {0.0, 0.0}, step), mu_ + step * high_step(dual, {0.0, 0.0}, step)};
}

NewtonSums NewtonSystem::predict(const Matrix& w, const Vector& du) {
  corrected_ = false;
  return step(w, du, true);
}

double NewtonSystem::correct(const Matrix& w, const Vector& du, double mu) {
  predicted_ = dtheta_;
  mu_ = mu;
  corrected_ = true;
  return step(w, du, false).spread2;
}

/// dtheta = (g'du + m - s q + target.low / theta - target.high / (1 - theta)) / D for all examples.
NewtonSums NewtonSystem::step(const Matrix& w, const Vector& du, bool with_corrector) {
  const Matrix dw = du.head(d_).transpose();
  const double shift = (objective_.fit_intercept() ? du(d_) : 0.0) - dw.row(0).dot(centre_);
  return reduce(false, [&](const Rows& rows, const ConstMatrixMap& X, Memory& memory, NewtonSums& sum) {
    auto dm = memory.m.leftCols(rows.count);
    auto cross = memory.s.leftCols(rows.count);
    multiply(X, dw, dm);
    if (spread_) objective_.data().covariances().bilinear(rows, w, dw, cross, memory.scratch.data());
    for (Index i = 0; i < rows.count; ++i) {
      const Index row = rows[i];
      const Dual& dual = duals_[static_cast<std::size_t>(row)];
      const Target aim = target(row);
      const double slope = -sign(row) * (dm(0, i) + shift) - (spread_ ? ratio_(row) * cross(0, i) : 0.0);
      const double dtheta = (slope + excess_(row) + aim.low / dual.theta - aim.high / dual.rest) / stiffness_(row);
      dtheta_(row) = dtheta;
      if (spread_) sum.spread2 += weight(row) * cross(0, i);
      if (!with_corrector) continue;
      const double push = weight(row) / stiffness_(row);
      const double second =
          -dtheta * (low_step(dual, aim, dtheta) / dual.theta + high_step(dual, aim, dtheta) / dual.rest);
      memory.coefficients(0, i) = push * (excess_(row) + second);
      memory.coefficients(1, i) = push * (1.0 / dual.theta - 1.0 / dual.rest);
    }
    if (!with_corrector) return;
    add_slopes(rows, X, w, 0, memory, sum.right);
    add_slopes(rows, X, w, 1, memory, sum.centring);
  });
}

/// sum -= sum_i a_i g_i, g = (-y (x - centre) - ratio S w, -y), with a in a row of memory.coefficients.
void NewtonSystem::add_slopes(const Rows& rows, const ConstMatrixMap& X, const Matrix& w, Index which, Memory& memory,
                              Vector& sum) const {
  const Index count = rows.count;
  auto a = memory.coefficients.row(which).head(count);
  auto signed_a = memory.values.row(0).head(count);
  for (Index i = 0; i < count; ++i) signed_a(i) = sign(rows[i]) * a(i);
  const double total = signed_a.sum();
  sum.head(d_).noalias() += X.transpose() * signed_a.transpose();
  sum.head(d_) -= total * centre_;
  if (objective_.fit_intercept()) sum(d_) += total;
  if (!spread_) return;
  auto scaled = memory.m.leftCols(count);
  for (Index i = 0; i < count; ++i) scaled(0, i) = ratio_(rows[i]) * a(i);
  MatrixMap out(sum.data(), 1, d_);
  objective_.data().covariances().add_weighted_products(rows, scaled, w, out, memory.scratch.data());
}

double NewtonSystem::longest_step(double length) const {
  for (Index i = 0; i < n_; ++i) {
    if (weight(i) == 0.0) continue;
    const Dual& dual = duals_[static_cast<std::size_t>(i)];
    const Target aim = target(i);
    length = longest(length, dual.theta, dtheta_(i));
    length = longest(length, dual.rest, -dtheta_(i));
    length = longest(length, dual.low, low_step(dual, aim, dtheta_(i)));
    length = longest(length, dual.high, high_step(dual, aim, dtheta_(i)));
  }
  return length;
}

double NewtonSystem::complementarity(double length) const {
  double total = 0.0;
  for (Index i = 0; i < n_; ++i) {
    if (weight(i) == 0.0) continue;
    const Dual& dual = duals_[static_cast<std::size_t>(i)];
    const Target aim = target(i);
    const double low = dual.low + length * low_step(dual, aim, dtheta_(i));
    const double high = dual.high + length * high_step(dual, aim, dtheta_(i));
    total += weight(i) * ((dual.theta + length * dtheta_(i)) * low + (dual.rest - length * dtheta_(i)) * high);
  }
  return total;
}

void NewtonSystem::move(double length) {
  for (Index i = 0; i < n_; ++i) {
    if (weight(i) == 0.0) continue;
    Dual& dual = duals_[static_cast<std::size_t>(i)];
    const Target aim = target(i);
    const double low = low_step(dual, aim, dtheta_(i));
    const double high = high_step(dual, aim, dtheta_(i));
    dual.theta += length * dtheta_(i);
    dual.rest -= length * dtheta_(i);
    dual.low += length * low;
    dual.high += length * high;
  }
}

}  // namespace halosvm
