#include "halosvm/interior_point.hpp"

#include "halosvm/moments.hpp"
#include "halosvm/normal.hpp"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace halosvm {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The dual variable of one example with all that the Newton step needs of it.
struct Dual {
  double theta;  ///< 0 < theta < 1
  double rest;   ///< 1 - theta, kept apart so that it stays accurate near 0
  double low;    ///< multiplier r of theta >= 0
  double high;   ///< multiplier t of theta <= 1
};

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

/// Complementarity targets of one step: theta r -> low, (1 - theta) t -> high.
struct Target {
  double low;
  double high;
};

/// Steps of the two multipliers that go with a step of theta.
double low_step(const Dual& at, const Target& target, double dtheta) {
  return (target.low - at.theta * at.low - at.low * dtheta) / at.theta;
}
double high_step(const Dual& at, const Target& target, double dtheta) {
  return (target.high - at.rest * at.high + at.high * dtheta) / at.rest;
}

/// The longest step not above 1 that keeps value + length * change >= 0.
double longest(double length, double value, double change) {
  return change < 0.0 ? std::min(length, -value / change) : length;
}

/// What one thread adds up over a lane of rows.
struct Sums {
  Matrix hessian;
  Vector positive;   ///< sum of c theta y x - c phi S w / s over the examples with y = 1; the last entry is for b
  Vector negative;   ///< the same for y = -1
  Vector right;      ///< right-hand side of the predictor; in the predictor pass, of the corrector's second order terms
  Vector centring;   ///< right-hand side per unit of mu
  double value = 0;  ///< sum of c psi
  double spread2 = 0;         ///< sum of c s^2; in the passes for a step, of c w'S dw
  double bonus_positive = 0;  ///< sum of c theta, y = 1
  double bonus_negative = 0;

  Sums(Index size, bool with_hessian)
      : hessian(with_hessian ? Matrix::Zero(size, size) : Matrix()),
        positive(Vector::Zero(size)),
        negative(Vector::Zero(size)),
        right(Vector::Zero(size)),
        centring(Vector::Zero(size)) {}

  void add(const Sums& other) {
    hessian += other.hessian;
    positive += other.positive;
    negative += other.negative;
    right += other.right;
    centring += other.centring;
    value += other.value;
    spread2 += other.spread2;
    bonus_positive += other.bonus_positive;
    bonus_negative += other.bonus_negative;
  }
};

class InteriorPoint {
 public:
  InteriorPoint(const Objective& objective, Index problem)
      : objective_(objective),
        problem_(problem),
        d_(objective.n_features()),
        n_(objective.n_samples()),
        block_(std::clamp<Index>(65536 / (8 * (d_ + 1)), 8, 256)),
        lane_rows_(std::max<Index>(block_, (n_ + lanes() - 1) / lanes())),
        centre_(Vector::Zero(d_)),
        w_(1, d_),
        duals_(static_cast<std::size_t>(n_)),
        excess_(n_),
        stiffness_(n_),
        ratio_(objective.uses_spread() ? n_ : 0),
        dtheta_(n_),
        second_(n_) {
    start();
  }

  /// One line of prose each: look, stop or go on, predict, correct, move.
  void run(const BatchSettings& settings, Result& result) {
    Index iteration = 0;
    int stuck = 0;
    for (;; ++iteration) {
      assemble();
      result.steps = std::max(result.steps, iteration);
      if (settings.report) settings.report({iteration, best_value_, suboptimality()});
      if (suboptimality() <= settings.tolerance || iteration == settings.max_iterations || stuck == 3) break;
      if (!factorise()) break;
      const Vector predicted = factor_.solve(predictor_);
      const double mu = centring_after(predicted);
      const double length = correct(factor_.solve(corrector_ + mu * centring_), mu);
      stuck = length < 1e-4 ? stuck + 1 : 0;
    }
    result.model.coef.row(problem_) = best_w_.row(0);
    result.model.intercept(problem_) = best_b_ - best_w_.row(0).dot(centre_);
    lower_bound_ = std::max(lower_bound_, 0.0);
  }

  double lower_bound() const { return lower_bound_; }

 private:
  /// Lanes are fixed by the data, so that sums do not depend on the number of threads; each holds a Hessian.
  Index lanes() const {
    constexpr Index budget = Index{1} << 27;
    return std::clamp<Index>(budget / (8 * (d_ + 1) * (d_ + 1)), 2, 16);
  }

  double suboptimality() const {
    return lower_bound_ > 0.0 ? std::max(0.0, best_value_ - lower_bound_) / lower_bound_ : infinity;
  }

  /// Runs body(rows, X, memory, sums) over all blocks and returns the sums in the order of the lanes.
  template <class Body>
  Sums reduce(bool with_hessian, const Body& body) {
    const Index size = d_ + 1;
    const Index n_lanes = (n_ + lane_rows_ - 1) / lane_rows_;
    std::vector<Sums> partial(static_cast<std::size_t>(n_lanes), Sums(size, with_hessian));
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
    Sums total = std::move(partial.front());
    for (std::size_t lane = 1; lane < partial.size(); ++lane) total.add(partial[lane]);
    return total;
  }

  struct Memory {
    Memory(const Objective& objective, Index block)
        : means(static_cast<std::size_t>(block * objective.n_features())),
          scratch(static_cast<std::size_t>(objective.data().covariances().scratch_size({block, 1}))),
          outer(block, objective.n_features() + 1),
          products(block, objective.n_features() + 1),
          dots(1, block),
          spreads(1, block),
          values(3, block),
          coefficients(4, block) {}
    std::vector<double> means;
    std::vector<double> scratch;
    Matrix outer;         ///< rows sqrt(c / D) (gradient of m - q s)
    Matrix products;      ///< rows S w
    Matrix dots;          ///< x'w or x'dw
    Matrix spreads;       ///< w'S w or w'S dw
    Matrix values;        ///< the loss and its slopes
    Matrix coefficients;  ///< factors of rows in weighted sums
  };

  double weight(Index row) const { return objective_.weight(row); }
  double sign(Index row) const { return objective_.sign(row, problem_); }

  /// Centre, a first direction from the class means, and duals in the middle of their bounds.
  void start() {
    const Moments about = moments(objective_);
    centre_ = about.centre;
    double positive = 0.0;
    for (Index i = 0; i < n_; ++i) positive += sign(i) > 0.0 ? weight(i) : 0.0;
    const double negative = 1.0 - positive;
    // The mean of y x about the centre, feature by feature over its variance: the direction of a naive Gaussian rule.
    const Sums sums = reduce(false, [&](const Rows& rows, const ConstMatrixMap& X, Memory& memory, Sums& sum) {
      auto a = memory.coefficients.row(0).head(rows.count);
      for (Index i = 0; i < rows.count; ++i) a(i) = weight(rows[i]) * sign(rows[i]);
      sum.positive.head(d_).noalias() += X.transpose() * a.transpose();
    });
    const Vector slope = sums.positive.head(d_) - (positive - negative) * centre_;
    const Vector variance = about.variance.cwiseMax(1e-300);
    w_.row(0) = slope.cwiseQuotient(variance).transpose();
    const double width = std::sqrt(w_.row(0).cwiseAbs2().dot(variance.transpose()));
    const double radius = 1.0 / std::sqrt(objective_.regularisation());
    if (width > 0.0 && std::isfinite(width)) {
      w_ *= std::min(1.0 / width, radius / w_.norm());
    } else {
      w_.setConstant(1e-6 * std::min(1.0, radius));
    }
    const double smaller = std::min(positive, negative);
    measure_start(0.5 * smaller / positive, 0.5 * smaller / negative);
  }

  void measure_start(double theta_positive, double theta_negative) {
    reduce(false, [&](const Rows& rows, const ConstMatrixMap& X, Memory& memory, Sums& /*sums*/) {
      margins(rows, X, memory);
      for (Index i = 0; i < rows.count; ++i) {
        const Index row = rows[i];
        const double theta = sign(row) > 0.0 ? theta_positive : theta_negative;
        Dual dual{theta, 1.0 - theta, 0.0, 0.0};
        const double s = memory.spreads(0, i);
        const double excess = memory.dots(0, i) - (s > 0.0 ? s * quantile_of(dual).q : 0.0);
        dual.high = std::max(excess, 0.0) + 1.0;
        dual.low = dual.high - excess;
        duals_[static_cast<std::size_t>(row)] = dual;
      }
    });
  }

  /// Leaves m in memory.dots and s in memory.spreads.
  void margins(const Rows& rows, const ConstMatrixMap& X, Memory& memory) {
    auto m = memory.dots.leftCols(rows.count);
    multiply(X, w_, m);
    const double shift = b_ - w_.row(0).dot(centre_);
    for (Index i = 0; i < rows.count; ++i) m(0, i) = 1.0 - sign(rows[i]) * (m(0, i) + shift);
    auto s = memory.spreads.leftCols(rows.count);
    if (objective_.uses_spread()) {
      objective_.data().covariances().bilinear(rows, w_, w_, s, memory.scratch.data());
      s = s.cwiseMax(0.0).cwiseSqrt();
      s = (s.array() < smallest_spread).select(0.0, s);
    } else {
      s.setZero();
    }
  }

  /// One pass: J and its dual bound, the Hessian, and the predictor's right-hand side.
  void assemble() {
    Sums total = reduce(true, [&](const Rows& rows, const ConstMatrixMap& X, Memory& memory, Sums& sum) {
      margins(rows, X, memory);
      const Index count = rows.count;
      auto outer = memory.outer.topRows(count);
      auto products = memory.products.topRows(count);
      outer.leftCols(d_) = X.rowwise() - centre_.transpose();
      outer.col(d_).setOnes();
      const bool spread = objective_.uses_spread() && memory.spreads.leftCols(count).maxCoeff() > 0.0;
      if (spread) {
        objective_.data().covariances().products(rows, w_.row(0).transpose(), products.leftCols(d_),
                                                 memory.scratch.data());
      }
      loss_->first(count, memory.dots.data(), memory.spreads.data(), memory.values.row(0).data(),
                   memory.values.row(1).data(), memory.values.row(2).data());
      auto theta_y = memory.coefficients.row(0);
      auto density = memory.coefficients.row(1);
      auto push = memory.coefficients.row(2);
      for (Index i = 0; i < count; ++i) {
        const Index row = rows[i];
        const Dual& dual = duals_[static_cast<std::size_t>(row)];
        const double c = weight(row);
        const double y = sign(row);
        const double m = memory.dots(0, i);
        const double s = memory.spreads(0, i);
        const bool uncertain = s > 0.0;
        const Quantile at = uncertain ? quantile_of(dual) : Quantile{0.0, 0.0};
        sum.value += c * memory.values(0, i);
        sum.spread2 += c * s * s;
        (y > 0.0 ? sum.bonus_positive : sum.bonus_negative) += c * dual.theta;
        const double stiffness =
            dual.low / dual.theta + dual.high / dual.rest + (uncertain ? s / std::max(at.density, 1e-300) : 0.0);
        const double ratio = uncertain ? at.q / s : 0.0;
        excess_(row) = m - s * at.q;
        stiffness_(row) = stiffness;
        if (ratio_.size() > 0) ratio_(row) = ratio;
        theta_y(i) = c * dual.theta * y;
        density(i) = uncertain ? c * at.density / s : 0.0;
        push(i) = c / stiffness;
        outer.row(i) *= -y;
        if (spread && uncertain) outer.row(i).head(d_) -= ratio * products.row(i).head(d_);
      }
      // Gradient by class: c theta y x = -(outer + ratio S w) c theta, so it is summed from X itself.
      for (const bool positive : {true, false}) {
        auto masked = memory.coefficients.row(3).head(count);
        for (Index i = 0; i < count; ++i) masked(i) = (sign(rows[i]) > 0.0) == positive ? theta_y(i) : 0.0;
        Vector& target = positive ? sum.positive : sum.negative;
        target.head(d_).noalias() += X.transpose() * masked.transpose();
        const double total = masked.sum();
        target.head(d_) -= total * centre_;
        target(d_) += total;
        if (!spread) continue;
        for (Index i = 0; i < count; ++i) masked(i) = (sign(rows[i]) > 0.0) == positive ? density(i) : 0.0;
        target.head(d_).noalias() -= products.leftCols(d_).transpose() * masked.transpose();
      }
      for (Index i = 0; i < count; ++i) {
        sum.right -= push(i) * excess_(rows[i]) * outer.row(i).transpose();
        outer.row(i) *= std::sqrt(push(i));
      }
      if (!objective_.fit_intercept()) outer.col(d_).setZero();
      sum.hessian.selfadjointView<Eigen::Lower>().rankUpdate(outer.transpose());
      if (spread) {
        const Vector curvature = density.head(count).transpose();
        auto corner = sum.hessian.topLeftCorner(d_, d_);
        objective_.data().covariances().add_weighted_matrices(rows, curvature, corner, memory.scratch.data());
        for (Index i = 0; i < count; ++i) {
          const double s = memory.spreads(0, i);
          products.row(i) *= s > 0.0 ? std::sqrt(density(i)) / s : 0.0;
        }
        sum.hessian.topLeftCorner(d_, d_).selfadjointView<Eigen::Lower>().rankUpdate(products.leftCols(d_).transpose(),
                                                                                     -1.0);
      }
    });
    conclude(total);
  }

  /// Keeps the best primal value and the best bound, and the system of the predictor.
  void conclude(Sums& sums) {
    const double lam = objective_.regularisation();
    const double value = 0.5 * lam * w_.squaredNorm() + sums.value;
    if (value < best_value_) {
      best_value_ = value;
      best_w_ = w_;
      best_b_ = b_;
    }
    // Scaling down the duals of the heavier class makes sum c theta y = 0 exactly, and keeps them feasible.
    double scale_positive = 1.0;
    double scale_negative = 1.0;
    if (objective_.fit_intercept()) {
      scale_positive = std::min(1.0, sums.bonus_negative / sums.bonus_positive);
      scale_negative = std::min(1.0, sums.bonus_positive / sums.bonus_negative);
    }
    const Vector dual_w = scale_positive * sums.positive.head(d_) + scale_negative * sums.negative.head(d_);
    const double bound = scale_positive * sums.bonus_positive + scale_negative * sums.bonus_negative -
                         dual_w.squaredNorm() / (2.0 * lam);
    lower_bound_ = std::max(lower_bound_, bound);

    hessian_ = std::move(sums.hessian);
    hessian_.diagonal().head(d_).array() += lam;
    Vector residual = -(sums.positive + sums.negative);
    residual.head(d_) += lam * w_.row(0).transpose();
    if (!objective_.fit_intercept()) {
      residual(d_) = 0.0;
      sums.right(d_) = 0.0;
      hessian_(d_, d_) = 1.0;
    }
    residual_ = residual;
    spread2_ = sums.spread2;
    predictor_ = sums.right - residual;
  }

  /// Cholesky after scaling to unit diagonal; rounding may ask for a little more diagonal.
  bool factorise() {
    scale_ = hessian_.diagonal().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
    for (double extra = 1e-15; extra < 1e-3; extra *= 100.0) {
      Matrix scaled = scale_.asDiagonal() * hessian_ * scale_.asDiagonal();
      scaled.diagonal().array() += extra;
      factor_.compute(std::move(scaled), scale_);
      if (factor_.ok()) return true;
    }
    return false;
  }

  /// The predictor pass: steps of theta for \p du, the corrector's right-hand side, and the mu to aim at.
  double centring_after(const Vector& du) {
    const Sums sums = newton_pass(du, [](Index /*row*/) { return Target{0.0, 0.0}; }, true);
    double length = 1.0;
    double before = 0.0;
    for (Index i = 0; i < n_; ++i) {
      const Dual& dual = duals_[static_cast<std::size_t>(i)];
      if (weight(i) == 0.0) continue;
      length = step_length(dual, {0.0, 0.0}, dtheta_(i), length);
      before += weight(i) * (dual.theta * dual.low + dual.rest * dual.high);
    }
    double after = 0.0;
    for (Index i = 0; i < n_; ++i) {
      const Dual& dual = duals_[static_cast<std::size_t>(i)];
      const double low = dual.low + length * low_step(dual, {0.0, 0.0}, dtheta_(i));
      const double high = dual.high + length * high_step(dual, {0.0, 0.0}, dtheta_(i));
      after += weight(i) * ((dual.theta + length * dtheta_(i)) * low + (dual.rest - length * dtheta_(i)) * high);
    }
    const double reduction = std::max(0.0, after) / before;
    corrector_ = sums.right - residual_;
    centring_ = sums.centring;
    return 0.5 * before * reduction * reduction * reduction;
  }

  static double step_length(const Dual& dual, const Target& target, double dtheta, double length) {
    length = longest(length, dual.theta, dtheta);
    length = longest(length, dual.rest, -dtheta);
    length = longest(length, dual.low, low_step(dual, target, dtheta));
    return longest(length, dual.high, high_step(dual, target, dtheta));
  }

  /// The corrector pass and the move; returns the length of the step.
  double correct(const Vector& du, double mu) {
    second_ = dtheta_;
    const auto target = [&](Index row) {
      const Dual& dual = duals_[static_cast<std::size_t>(row)];
      const double step = second_(row);
      return Target{mu - step * low_step(dual, {0.0, 0.0}, step), mu + step * high_step(dual, {0.0, 0.0}, step)};
    };
    const double shrinking = newton_pass(du, target, false).spread2;
    double length = 1.0 / 0.995;
    // Spreads bend where w passes 0, and Newton's model knows nothing of it: stay on this side.
    if (shrinking < 0.0) length = std::min(length, 0.9 * spread2_ / -shrinking);
    for (Index i = 0; i < n_; ++i) {
      if (weight(i) == 0.0) continue;
      length = step_length(duals_[static_cast<std::size_t>(i)], target(i), dtheta_(i), length);
    }
    length = std::min(1.0, 0.995 * length);
    for (Index i = 0; i < n_; ++i) {
      Dual& dual = duals_[static_cast<std::size_t>(i)];
      if (weight(i) == 0.0) continue;
      const Target aim = target(i);
      const double low = low_step(dual, aim, dtheta_(i));
      const double high = high_step(dual, aim, dtheta_(i));
      dual.theta += length * dtheta_(i);
      dual.rest -= length * dtheta_(i);
      dual.low += length * low;
      dual.high += length * high;
    }
    w_.row(0) += length * du.head(d_).transpose();
    if (objective_.fit_intercept()) b_ += length * du(d_);
    return length;
  }

  /// dtheta = (g'du + m - s q + low / theta - high / (1 - theta)) / D for all examples; with \p sides also the sums
  /// that the corrector's right-hand side is made of.
  template <class TargetOf>
  Sums newton_pass(const Vector& du, const TargetOf& target_of, bool sides) {
    const Matrix dw = du.head(d_).transpose();
    const double shift = (objective_.fit_intercept() ? du(d_) : 0.0) - dw.row(0).dot(centre_);
    return reduce(false, [&](const Rows& rows, const ConstMatrixMap& X, Memory& memory, Sums& sum) {
      const Index count = rows.count;
      auto dots = memory.dots.leftCols(count);
      auto cross = memory.spreads.leftCols(count);
      const Covariances& covariances = objective_.data().covariances();
      const bool spread = objective_.uses_spread();
      multiply(X, dw, dots);
      if (spread) covariances.bilinear(rows, w_, dw, cross, memory.scratch.data());
      for (Index i = 0; i < count; ++i) {
        const Index row = rows[i];
        const Dual& dual = duals_[static_cast<std::size_t>(row)];
        const Target target = target_of(row);
        const double slope = -sign(row) * (dots(0, i) + shift) - (spread ? ratio_(row) * cross(0, i) : 0.0);
        const double step =
            (slope + excess_(row) + target.low / dual.theta - target.high / dual.rest) / stiffness_(row);
        dtheta_(row) = step;
        if (spread) sum.spread2 += weight(row) * cross(0, i);
        if (!sides) continue;
        const double push = weight(row) / stiffness_(row);
        const double second =
            -step * (low_step(dual, target, step) / dual.theta + high_step(dual, target, step) / dual.rest);
        memory.coefficients(0, i) = push * (excess_(row) + second);
        memory.coefficients(1, i) = push * (1.0 / dual.theta - 1.0 / dual.rest);
      }
      if (!sides) return;
      add_gradients(rows, X, 0, memory, sum.right);
      add_gradients(rows, X, 1, memory, sum.centring);
    });
  }

  /// sum -= sum_i a_i g_i with g = (-y (x - centre) - ratio S w, -y) and a in a row of memory.coefficients.
  void add_gradients(const Rows& rows, const ConstMatrixMap& X, Index which, Memory& memory, Vector& sum) {
    const Index count = rows.count;
    auto signed_part = memory.coefficients.row(2).head(count);
    auto a = memory.coefficients.row(which).head(count);
    for (Index i = 0; i < count; ++i) signed_part(i) = sign(rows[i]) * a(i);
    const double total = signed_part.sum();
    sum.head(d_).noalias() += X.transpose() * signed_part.transpose();
    sum.head(d_) -= total * centre_;
    if (objective_.fit_intercept()) sum(d_) += total;
    if (!objective_.uses_spread()) return;
    auto scaled = memory.dots.leftCols(count);
    for (Index i = 0; i < count; ++i) scaled(0, i) = ratio_(rows[i]) * a(i);
    MatrixMap out(sum.data(), 1, d_);
    objective_.data().covariances().add_weighted_products(rows, scaled, w_, out, memory.scratch.data());
  }

  /// Cholesky factor of the scaled matrix and the scaling.
  class Factor {
   public:
    void compute(Matrix scaled, const Vector& scale) {
      scale_ = scale;
      llt_.compute(std::move(scaled));
    }
    bool ok() const { return llt_.info() == Eigen::Success; }
    Vector solve(const Vector& right) const { return scale_.cwiseProduct(llt_.solve(scale_.cwiseProduct(right))); }

   private:
    Vector scale_;
    Eigen::LLT<Matrix, Eigen::Lower> llt_;
  };

  const Objective& objective_;
  std::shared_ptr<const Loss> loss_ = make_loss("expected_hinge");  ///< equals the hinge where s = 0
  Index problem_;
  Index d_;
  Index n_;
  Index block_;
  Index lane_rows_;
  Vector centre_;
  Matrix w_;
  double b_ = 0.0;  ///< intercept for centred means
  std::vector<Dual> duals_;
  Vector excess_;     ///< m - s q
  Vector stiffness_;  ///< D = r / theta + t / (1 - theta) + s / phi(q)
  Vector ratio_;      ///< q / s, or 0
  Vector dtheta_;
  Vector second_;  ///< the predictor's dtheta, for the second-order correction
  Matrix hessian_;
  Vector scale_;
  Factor factor_;
  Vector residual_;
  double spread2_ = 0.0;
  Vector predictor_;
  Vector corrector_;
  Vector centring_;
  double best_value_ = infinity;
  double lower_bound_ = -infinity;
  Matrix best_w_;
  double best_b_ = 0.0;
};

}  // namespace

Result minimize_interior_point(const Objective& objective, const LinearModel& start, const BatchSettings& settings) {
  check_start(objective, start);
  Result result;
  result.model = LinearModel(objective.n_problems(), objective.n_features());
  Vector lower(objective.n_problems());
  for (Index k = 0; k < objective.n_problems(); ++k) {
    InteriorPoint problem(objective, k);
    problem.run(settings, result);
    lower(k) = problem.lower_bound();
  }
  result.epochs = result.steps;
  result.model.intercept = objective.exact_bias(result.model.coef, result.model.intercept);
  certify(objective, lower, settings.tolerance, result);
  return result;
}

}  // namespace halosvm
