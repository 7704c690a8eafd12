// Newton's system of the interior points: a point and its dual variables come in, sums and steps go out.

#include "solver/interior_point/newton_system.hpp"

#include "linalg/multiply.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace halosvm {
namespace {

/// The bend of a spread s > 0 that is a function of w.
Bend bend_of(double s, const DualLaw& at) { return {s * at.q, at.stiffness(s), at.q / s, at.density / s, 1.0 / s}; }

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
      beyond(Vector::Zero(size)),
      right(Vector::Zero(size)),
      centring(Vector::Zero(size)) {}

void NewtonSums::set_zero() {
  hessian.setZero();
  for (Vector* sum : {&positive, &negative, &beyond, &right, &centring}) sum->setZero();
  for (double* sum : {&value, &spread2, &curvature, &theta_positive, &theta_negative, &dual_positive, &dual_negative})
    *sum = 0.0;
}

void NewtonSums::add(const NewtonSums& other) {
  hessian += other.hessian;
  positive += other.positive;
  negative += other.negative;
  beyond += other.beyond;
  right += other.right;
  centring += other.centring;
  value += other.value;
  spread2 += other.spread2;
  curvature += other.curvature;
  dual_positive += other.dual_positive;
  dual_negative += other.dual_negative;
  theta_positive += other.theta_positive;
  theta_negative += other.theta_negative;
}

/// Memory of one thread for one block.
struct NewtonSystem::Memory {
  Memory(const LocalObjective& objective, Index block)
      : means(static_cast<std::size_t>(block * objective.n_features())),
        scratch(static_cast<std::size_t>(objective.data().covariances().scratch_size({block, 1}))),
        outer(block, objective.n_features() + 1),
        products(block, objective.uses_spread() ? objective.n_features() : 0),
        m(1, block),
        s(1, block),
        values(3, block),
        coefficients(5, block),
        bends(static_cast<std::size_t>(block)) {}

  std::vector<double> means;
  std::vector<double> scratch;
  Matrix outer;         ///< rows g, the gradients of m - q s
  Matrix products;      ///< rows z: S w, or F u1
  Matrix m;             ///< margin deficits, or their changes
  Matrix s;             ///< spreads, or z'dw
  Matrix values;        ///< the loss and its slopes
  Matrix coefficients;  ///< factors of rows in sums
  std::vector<Bend> bends;
};

struct NewtonSystem::PassMemory {
  BlockMemory<NewtonSums, Memory> with_hessian;
  BlockMemory<NewtonSums, Memory> without;
};

NewtonSystem::~NewtonSystem() = default;

NewtonSystem::NewtonSystem(const LocalObjective& objective, Vector centre, bool with_cones)
    : objective_(objective),
      loss_(objective.loss()),
      quantile_(loss_->traits().quantile_dual),
      n_(objective.n_samples()),
      d_(objective.n_features()),
      block_(rows_of_block(d_)),
      lane_rows_(std::max({block_, objective.data().task_rows(), (n_ + lanes(d_) - 1) / lanes(d_)})),
      spread_(!objective.all_certain()),
      centre_(std::move(centre)),
      duals_(static_cast<std::size_t>(n_)),
      excess_(n_),
      stiffness_(n_),
      ratio_(spread_ ? n_ : 0),
      dtheta_(Vector::Zero(n_)),
      predicted_(n_),
      memory_(std::make_unique<PassMemory>()) {
  if (with_cones) cones_ = Cones::make(objective);
  cone_weight_ = 0.0;
  for (Index i = 0; cones_ && i < n_; ++i) cone_weight_ += weight(i) * cones_->degree(i);
}

/// Runs body(rows, X, memory, sums) over all blocks and returns the sums in the order of the lanes.
template <class Body>
NewtonSums NewtonSystem::reduce(bool with_hessian, const Body& body) const {
  NewtonSums total(d_ + 1, with_hessian);
  BlockMemory<NewtonSums, Memory>& memory = with_hessian ? memory_->with_hessian : memory_->without;
  sum_over_blocks(
      Chunks(n_, lane_rows_), block_, objective_.execution(), memory, [&] { return NewtonSums(d_ + 1, with_hessian); },
      [&] { return Memory(objective_, block_); },
      [&](Index begin, Index count, Memory& mine, NewtonSums& part) {
        const Rows rows{begin, count};
        body(rows, objective_.data().means().block(rows, mine.means.data()), mine, part);
      },
      total);
  return total;
}

Vector NewtonSystem::slope_at_zero() const {
  const NewtonSums sums =
      reduce(false, [&](const Rows& rows, const ConstMatrixMap& X, Memory& memory, NewtonSums& sum) {
        auto a = memory.coefficients.row(0).head(rows.count);
        for (Index i = 0; i < rows.count; ++i) {
          a(i) = weight(rows[i]) * sign(rows[i]) * objective_.offset(rows[i]);
        }
        linalg::add_product(X.transpose(), a.transpose(), sum.right.head(d_));
        sum.right(d_) += a.sum();
      });
  const double total = objective_.has_plain_targets() ? class_weight(true) - class_weight(false) : sums.right(d_);
  return sums.right.head(d_) - total * centre_;
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
      Dual dual{theta, 1.0 - theta, 0.0, 0.0};
      const DualLaw at = dual.law(quantile_);
      const double s = cones_ ? cones_->start(rows[i], at.density) : memory.s(0, i);
      const double excess = memory.m(0, i) - s * at.q;
      dual.high = std::max(excess, 0.0) + 1.0;
      dual.low = dual.high - excess;
      duals_[static_cast<std::size_t>(rows[i])] = dual;
    }
  });
}

/// Fills memory.m and memory.s.
void NewtonSystem::margins(const Rows& rows, const ConstMatrixMap& X, const Matrix& w, double b, Memory& memory) {
  auto m = memory.m.leftCols(rows.count);
  auto s = memory.s.leftCols(rows.count);
  multiply(X, w, m);
  const double shift = b - w.row(0).dot(centre_);
  for (Index i = 0; i < rows.count; ++i) {
    m(0, i) = objective_.offset(rows[i]) - sign(rows[i]) * (m(0, i) + shift);
  }
  if (cones_) {
    cones_->look(rows, w, s, memory.scratch.data());
  } else if (spread_) {
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
    add_bends(rows, w, memory);
    loss_->first(rows.count, memory.m.data(), memory.s.data(), memory.values.row(0).data(), memory.values.row(1).data(),
                 memory.values.row(2).data());
    add_examples(rows, memory, sum);
    add_gradients(rows, X, memory, sum);
    add_hessian(rows, memory, sum);
  });
}

/// The bends of the spreads, and the rows z.
void NewtonSystem::add_bends(const Rows& rows, const Matrix& w, Memory& memory) {
  if (!spread_) return;
  for (Index i = 0; i < rows.count; ++i) {
    const DualLaw at = duals_[static_cast<std::size_t>(rows[i])].law(quantile_);
    const double s = memory.s(0, i);
    Bend& bend = memory.bends[static_cast<std::size_t>(i)];
    bend = cones_ ? cones_->bend(rows[i], at) : (s > 0.0 ? bend_of(s, at) : Bend{});
  }
  if (cones_) {
    cones_->products(rows, memory.products, memory.scratch.data());
  } else {
    objective_.data().covariances().products(rows, w.row(0).transpose(), memory.products.topRows(rows.count),
                                             memory.scratch.data());
  }
}

/// What each example needs for the steps to come; turns memory.outer into the h, and leaves c theta y, c / D,
/// c curvature, the sharpness and c in the rows of memory.coefficients.
void NewtonSystem::add_examples(const Rows& rows, Memory& memory, NewtonSums& sum) {
  for (Index i = 0; i < rows.count; ++i) {
    const Index row = rows[i];
    const Dual& dual = duals_[static_cast<std::size_t>(row)];
    const Bend& bend = memory.bends[static_cast<std::size_t>(i)];
    const double c = weight(row);
    const double y = sign(row);
    sum.value += c * memory.values(0, i);
    if (!cones_) {
      sum.spread2 += c * memory.s(0, i) * memory.s(0, i);
      sum.curvature += c * bend.curvature;
    }
    (y > 0.0 ? sum.theta_positive : sum.theta_negative) += c * dual.theta;
    (y > 0.0 ? sum.dual_positive : sum.dual_negative) += c * dual.theta * objective_.offset(row);

    excess_(row) = memory.m(0, i) - bend.excess;
    stiffness_(row) = dual.low / dual.theta + dual.high / dual.rest + bend.stiffness;
    memory.outer.row(i) *= -y;
    if (spread_) {
      ratio_(row) = bend.ratio;
      memory.outer.row(i).head(d_) -= ratio_(row) * memory.products.row(i);
    }
    memory.coefficients(0, i) = c * dual.theta * y;
    memory.coefficients(1, i) = c / stiffness_(row);
    memory.coefficients(2, i) = c * bend.curvature;
    memory.coefficients(3, i) = bend.sharpness;
    memory.coefficients(4, i) = c;
  }
}

/// The two classes' parts of the gradient, from the means themselves, and the predictor's right-hand side.
void NewtonSystem::add_gradients(const Rows& rows, const ConstMatrixMap& X, Memory& memory, NewtonSums& sum) {
  const Index count = rows.count;
  auto masked = memory.values.row(0).head(count);
  for (const bool positive : {true, false}) {
    Vector& target = positive ? sum.positive : sum.negative;
    const auto mask = [&](const auto& a) {
      for (Index i = 0; i < count; ++i) {
        masked(i) = (sign(rows[i]) > 0.0) == positive ? a(i) : 0.0;
      }
    };
    mask(memory.coefficients.row(0));
    const double total = masked.sum();
    linalg::add_product(X.transpose(), masked.transpose(), target.head(d_));
    target.head(d_) -= total * centre_;
    target(d_) += total;
    if (cones_) {
      mask(memory.coefficients.row(4));
      cones_->add_gradient(rows, masked, target, sum.beyond, memory.scratch.data());
    } else if (spread_) {
      mask(memory.coefficients.row(2));
      linalg::add_product(memory.products.topRows(count).transpose(), masked.transpose(), target.head(d_), -1.0);
    }
  }
  for (Index i = 0; i < count; ++i) masked(i) = memory.coefficients(1, i) * excess_(rows[i]);
  linalg::add_product(memory.outer.topRows(count).transpose(), masked.transpose(), sum.right, -1.0);
  if (!cones_) return;
  masked.setZero();
  cones_->add_push(rows, masked, false, sum.right, memory.scratch.data());
}

/// H += sum c h h' / D + sum c curvature (S - sharpness^2 z z'), or what cones have in place of the last.
void NewtonSystem::add_hessian(const Rows& rows, Memory& memory, NewtonSums& sum) const {
  const Index count = rows.count;
  auto outer = memory.outer.topRows(count);
  for (Index i = 0; i < count; ++i) outer.row(i) *= std::sqrt(memory.coefficients(1, i));
  linalg::add_gram(outer, sum.hessian);
  if (!spread_) return;
  auto corner = sum.hessian.topLeftCorner(d_, d_);
  if (cones_) {
    cones_->add_curvature(rows, memory.products.topRows(count), corner, memory.scratch.data());
    return;
  }
  const Vector curvature = memory.coefficients.row(2).head(count).transpose();
  objective_.data().covariances().add_weighted_matrices(rows, curvature, corner, memory.scratch.data());
  auto products = memory.products.topRows(count);
  for (Index i = 0; i < count; ++i) products.row(i) *= std::sqrt(curvature(i)) * memory.coefficients(3, i);
  linalg::add_gram(products, corner, -1.0);
}

ExactDual NewtonSystem::exact(const Matrix& w) const {
  ExactDual sums(objective_, centre_);
  for (Index i = 0; i < n_; ++i) {
    if (weight(i) == 0.0) continue;
    const Dual& dual = duals_[static_cast<std::size_t>(i)];
    const Vector v = cones_ ? Vector(cones_->dual(i)) : Vector();
    if (cones_ && v.size() == 0) {
      sums.add(i, dual.theta, 0.0, v, w);
    } else {
      sums.add(i, dual.theta, spread_ ? dual.law(quantile_).density : 0.0, v, w);
    }
  }
  return sums;
}

Target NewtonSystem::target(Index row) const {
  if (!corrected_) return {0.0, 0.0};
  const Dual& dual = duals_[static_cast<std::size_t>(row)];
  const double step = predicted_(row);
  return {mu_ - share_ * step * dual.low_step({0.0, 0.0}, step),
          mu_ + share_ * step * dual.high_step({0.0, 0.0}, step)};
}

NewtonSums NewtonSystem::predict(const Matrix& w, const Vector& du) {
  mu_ = 0.0;
  corrected_ = false;
  return step(w, du, true);
}

double NewtonSystem::correct(const Matrix& w, const Vector& du, double mu, double share) {
  predicted_ = dtheta_;
  mu_ = mu;
  share_ = share;
  if (cones_) cones_->scale_second_order(share);
  corrected_ = true;
  return step(w, du, false).spread2;
}

/// dtheta = (h'du + m - excess + target.low / theta - target.high / (1 - theta)) / D for all examples.
NewtonSums NewtonSystem::step(const Matrix& w, const Vector& du, bool with_corrector) {
  const Matrix dw = du.head(d_).transpose();
  const double shift = (objective_.fit_intercept() ? du(d_) : 0.0) - dw.row(0).dot(centre_);
  return reduce(false, [&](const Rows& rows, const ConstMatrixMap& X, Memory& memory, NewtonSums& sum) {
    auto dm = memory.m.leftCols(rows.count);
    auto cross = memory.s.leftCols(rows.count);
    multiply(X, dw, dm);
    if (cones_) {
      cones_->project(rows, dw, cross, memory.scratch.data());
    } else if (spread_) {
      objective_.data().covariances().bilinear(rows, w, dw, cross, memory.scratch.data());
    }
    for (Index i = 0; i < rows.count; ++i) {
      const double slope = -sign(rows[i]) * (dm(0, i) + shift);
      step_example(rows[i], slope, cross(0, i));
      if (spread_ && !cones_) sum.spread2 += weight(rows[i]) * cross(0, i);
    }
    if (!with_corrector) return;
    for (Index i = 0; i < rows.count; ++i) {
      std::tie(memory.coefficients(0, i), memory.coefficients(1, i)) = corrector_parts(rows[i]);
    }
    add_slopes(rows, X, w, 0, memory, sum.right);
    add_slopes(rows, X, w, 1, memory, sum.centring);
  });
}

/// \param dm the step of m. \param cross z'dw.
void NewtonSystem::step_example(Index row, double dm, double cross) {
  const Dual& dual = duals_[static_cast<std::size_t>(row)];
  const Target aim = target(row);
  double rise = dm + excess_(row) + aim.low / dual.theta - aim.high / dual.rest;
  if (spread_) rise -= ratio_(row) * cross;
  if (cones_) rise += cones_->lift(row, mu_);
  dtheta_(row) = rise / stiffness_(row);
  if (cones_) cones_->step(row, dtheta_(row), cross, mu_);
}

/// The two parts of dtheta that depend on no step, times c: the corrector's without mu, and per unit of mu.
std::pair<double, double> NewtonSystem::corrector_parts(Index row) {
  const Dual& dual = duals_[static_cast<std::size_t>(row)];
  const Target none{0.0, 0.0};
  const double step = dtheta_(row);
  double fixed =
      excess_(row) - step * (dual.low_step(none, step) / dual.theta + dual.high_step(none, step) / dual.rest);
  double centring = 1.0 / dual.theta - 1.0 / dual.rest;
  if (cones_) {
    cones_->keep_second_order(row);
    fixed += cones_->lift(row, 0.0);
    centring += cones_->centring_lift(row);
  }
  const double push = weight(row) / stiffness_(row);
  return {push * fixed, push * centring};
}

/// sum -= sum_i a_i h_i, h = (-y (x - centre) - ratio z, -y), with a in a row of memory.coefficients; the cones add
/// their own part of the right-hand side.
void NewtonSystem::add_slopes(const Rows& rows, const ConstMatrixMap& X, const Matrix& w, Index which, Memory& memory,
                              Vector& sum) {
  const Index count = rows.count;
  auto a = memory.coefficients.row(which).head(count);
  auto signed_a = memory.values.row(0).head(count);
  for (Index i = 0; i < count; ++i) signed_a(i) = sign(rows[i]) * a(i);
  const double total = signed_a.sum();
  linalg::add_product(X.transpose(), signed_a.transpose(), sum.head(d_));
  sum.head(d_) -= total * centre_;
  if (objective_.fit_intercept()) sum(d_) += total;
  if (!spread_) return;
  auto scaled = memory.m.leftCols(count);
  for (Index i = 0; i < count; ++i) scaled(0, i) = ratio_(rows[i]) * a(i);
  if (cones_) {
    cones_->add_push(rows, scaled, which == 1, sum, memory.scratch.data());
    return;
  }
  MatrixMap out(sum.data(), 1, d_);
  objective_.data().covariances().add_weighted_products(rows, scaled, w, out, memory.scratch.data());
}

double NewtonSystem::longest_step(double length) const {
  for (Index i = 0; i < n_; ++i) {
    if (weight(i) == 0.0) continue;
    length = duals_[static_cast<std::size_t>(i)].longest_step(target(i), dtheta_(i), length);
    if (cones_) length = cones_->longest_step(i, length);
  }
  return length;
}

double NewtonSystem::complementarity(double length) const {
  double total = 0.0;
  for (Index i = 0; i < n_; ++i) {
    if (weight(i) == 0.0) continue;
    const Dual& dual = duals_[static_cast<std::size_t>(i)];
    total += weight(i) * dual.moved(target(i), dtheta_(i), length).complementarity();
    if (cones_) total += weight(i) * cones_->complementarity(i, length);
  }
  return total / (2.0 + cone_weight_);
}

void NewtonSystem::move(double length) {
  for (Index i = 0; i < n_; ++i) {
    if (weight(i) == 0.0) continue;
    Dual& dual = duals_[static_cast<std::size_t>(i)];
    dual = dual.moved(target(i), dtheta_(i), length);
    if (cones_) cones_->move(i, length);
  }
}

}  // namespace halosvm
