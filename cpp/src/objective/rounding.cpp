// What rounding may do to a value of J and to a bound, and both with twice the digits.

#include "objective/rounding.hpp"

#include "core/double_double.hpp"
#include "halosvm/core/check.hpp"
#include "gaussians/norms.hpp"
#include "linalg/negative_part.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace halosvm {
namespace {

constexpr double unit = 0x1p-53;

bool cancels(const LocalObjective& objective) {
  return objective.uses_spread() && objective.data().covariances().cancels();
}

/// The matrices S of single examples, for kinds without factors, as they are meant: symmetric and without the negative
/// eigenvalues that rounding gives them.
class ExactMatrix {
 public:
  explicit ExactMatrix(const LocalObjective& problem)
      : covariances_(problem.data().covariances()),
        d_(problem.n_features()),
        scratch_(covariances_.scratch_size({1, 1})) {}

  /// Reads the matrix of a row. \param as_stored with those eigenvalues, which takes less time.
  void read(const Rows& row, bool as_stored) {
    matrix_.setZero(d_, d_);
    covariances_.add_weighted_matrices(row, Vector::Ones(1), matrix_, scratch_.data());
    if (!covariances_.cancels()) matrix_.triangularView<Eigen::StrictlyUpper>() = matrix_.transpose();
    if (as_stored) return;
    negative_.compute(0.5 * (matrix_ + matrix_.transpose()));
  }

  /// w'S w, and S w.
  double multiply(const Matrix& w, std::vector<DoubleDouble>& out) const {
    out.assign(static_cast<std::size_t>(d_), DoubleDouble(0.0));
    DoubleDouble square(0.0);
    Vector below = Vector::Zero(d_);
    if (!negative_.none()) below = negative_.times(w.row(0).transpose());
    for (Index j = 0; j < d_; ++j) {
      DoubleDouble& entry = out[static_cast<std::size_t>(j)];
      for (Index l = 0; l < d_; ++l) {
        entry.add_product(0.5 * matrix_(j, l), w(0, l));
        entry.add_product(0.5 * matrix_(l, j), w(0, l));
      }
      entry.add_product(1.0, below(j));
      square.add_product(w(0, j), entry);
    }
    return std::max(0.0, square.value());
  }

 private:
  const Covariances& covariances_;
  Index d_;
  Matrix matrix_;
  Vector scratch_;
  linalg::NegativePart negative_;
};

/// Spreads |R'w| of single examples without cancellation.
class ExactSpread {
 public:
  ExactSpread(const LocalObjective& problem, bool as_stored)
      : covariances_(problem.data().covariances()),
        factors_(covariances_.factors()),
        norm_(problem.spread_norm()),
        dense_(factors_ == nullptr && cancels(problem)),
        as_stored_(as_stored),
        d_(problem.n_features()),
        matrix_(problem),
        column_(1, d_),
        scratch_(std::max(d_, covariances_.scratch_size({1, 1}))) {}

  double operator()(const Rows& row, const Matrix& w) {
    if (factors_ != nullptr) return of_factor(row, w);
    if (dense_) {
      matrix_.read(row, as_stored_);
      return std::sqrt(matrix_.multiply(w, product_));
    }
    Matrix s2(1, 1);  // sums of squares do not cancel
    covariances_.bilinear(row, w, w, s2, scratch_.data());
    return std::sqrt(std::max(0.0, s2(0, 0)));
  }

  /// The relative error of a spread.
  double unit_error(const Rows& row) const {
    constexpr double few = 8.0;  // also for roots of variances, which are rounded
    return unit * (few + static_cast<double>(factors_ != nullptr ? factors_->rank(row[0]) : d_));
  }

 private:
  double of_factor(const Rows& row, const Matrix& w) {
    const Index rank = factors_->rank(row[0]);
    Vector projected(rank);
    for (Index k = 0; k < rank; ++k) {
      factors_->combine(row, Vector::Unit(rank, k), column_, scratch_.data());
      DoubleDouble p;
      for (Index j = 0; j < d_; ++j) p.add_product(column_(0, j), w(0, j));
      projected(k) = p.value();
    }
    return norm(projected, norm_);
  }

  const Covariances& covariances_;
  const Factors* factors_;
  double norm_;
  bool dense_;
  bool as_stored_;
  Index d_;
  ExactMatrix matrix_;
  Matrix column_;
  Vector scratch_;
  std::vector<DoubleDouble> product_;
};

}  // namespace

namespace {

/// The examples that the last digits of sums depend on; elsewhere there may be very many.
double count(const Objective& objective) {
  constexpr double many = 1e9;
  return objective.local() != nullptr ? static_cast<double>(objective.local()->n_samples()) : many;
}

/// Additions that a term of w'x may go through: rows of dense means are added in eight lanes or more.
double additions(const Objective& objective) {
  constexpr double lanes = 8.0;
  const auto d = static_cast<double>(objective.n_features());
  const bool dense = objective.local() != nullptr && !objective.local()->data().means().sparse();
  return dense ? 16.0 + d / lanes : 12.0 + d;
}

/// Sums with weights c theta, theta and phi dual variables of quantiles, are at most so many times sum c theta times
/// the size: by the smallest weight.
double concentration(const Objective& objective) {
  constexpr double densities = 40.0;  // phi(q) / Phi(q) where Phi(q) is not yet 0
  const LocalObjective* local = objective.local();
  if (local == nullptr || !objective.loss()->traits().has_dual()) return infinity;
  double lightest = 1.0;
  for (Index i = 0; i < local->n_samples(); ++i) {
    const double c = local->weight(local->rows(i, 1)[0]);
    if (c > 0.0) lightest = std::min(lightest, c);
  }
  return (objective.all_certain() ? 1.0 : 1.0 + densities) / std::sqrt(lightest);
}

/// A bound of |(psi_m, psi_s)|: theta^2 + phi^2 <= 1 for duals of quantiles.
double steepest(const Objective& objective) {
  const LossTraits& traits = objective.loss()->traits();
  if (objective.all_certain() || traits.quantile_dual) return traits.steepest;
  return std::hypot(traits.steepest, traits.steepest_in_spread());
}

}  // namespace

Rounding::Rounding(const Objective& objective, const Moments& about)
    : root_(std::sqrt(2.0 * objective.regularisation())),
      unit_scores_(unit * additions(objective)),
      unit_features_(unit * (12.0 + 0.5 * static_cast<double>(objective.n_features()))),
      unit_samples_(unit * std::min(4.0 + count(objective), 32.0 + 2.0 * std::sqrt(count(objective)))),
      concentration_(concentration(objective)),
      offset_(objective.local() != nullptr ? objective.local()->largest_offset() : 1.0),
      steepest_(steepest(objective)),
      sharpest_((objective.all_certain() ? 1.0 : 2.0) * objective.loss()->traits().sharpest),
      width_(std::sqrt(about.variance.sum())),
      size_((about.variance + about.centre.cwiseAbs2()).cwiseSqrt()),
      widest_(about.widest) {}

/// Errors of m and s together are at most as large as the example itself, and of second order where the loss bends:
/// for psi(m, s) = E h(m + s Z) its Hessian is at most h'' E(1 + Z^2).
double Rounding::of_value(const ConstVectorRef& w, double b, double square) const {
  const double error = unit_scores_ * (offset_ + std::abs(b) + w.cwiseAbs().dot(size_));
  double slope = steepest_;
  if (std::isfinite(square) && std::isfinite(sharpest_)) {
    slope = std::min(slope, std::sqrt(square) + 0.5 * sharpest_ * error);
  }
  return error > 0.0 ? slope * error : 0.0;
}

/// Every |S_jk|^2 <= S_jj S_kk; an error of s^2 moves s by half of it over s.
double Rounding::of_spreads(const ConstVectorRef& w, double curvature) const {
  if (widest_.size() == 0) return 0.0;
  const double width = w.cwiseAbs().dot(widest_);
  return unit_features_ * width * width * curvature;
}

double Rounding::of_spreads(const LocalObjective& problem, const LinearModel& model) const {
  if (widest_.size() == 0) return 0.0;
  const double steepest = problem.loss()->traits().steepest_in_spread();
  const double width = model.coef.row(0).cwiseAbs().dot(widest_.transpose());
  const double noise2 = unit_features_ * width * width;
  Matrix s(problem.data().n_samples(), 1);
  decision_std(model, problem.data().covariances(), s, problem.execution());
  double total = 0.0;
  for (Index i = 0; i < problem.n_samples(); ++i) {
    const Index row = problem.rows(i, 1)[0];
    total += problem.weight(row) * steepest * noise2 / std::max(s(row, 0), std::sqrt(noise2));
  }
  return noise2 > 0.0 ? total : 0.0;
}

/// With lam w = sum c (theta y x - phi z), |z|^2 <= tr S, the terms of each feature add up to at most the root of
/// sum c (theta^2 + phi^2) times its size; and for duals of quantiles no term is larger than the size over the root of
/// the smallest c.
double Rounding::bound(const DualSums& sums, const ConstVectorRef& dual_w, double moved) const {
  const double unit_sum = unit_samples_ * std::min(std::sqrt(sums.square), concentration_ * sums.slope);
  const double norm = (dual_w / root_).norm() + moved / root_;  // squares of tiny coefficients would underflow
  const double first = 2.0 * (unit_sum / root_) * (dual_w.cwiseAbs().dot(size_) / root_ + moved / root_ * size_.norm());
  const double second = unit_sum / root_ * size_.norm();
  return best_scaled(sums.value - unit_samples_ * sums.size,
                     norm * norm * (1.0 + unit_samples_) + first + second * second);
}

/// What scales on the heavier side, sum c (theta (x - centre) - phi z) with |z|^2 <= tr S, is at most the root of
/// sum c (theta^2 + phi^2) times that of the total variance.
double Rounding::bound(const Evaluation& at, Index k, const ConstVectorRef& w, const ConstVectorRef& dual_w) const {
  DualSums sums{at.dual(k), at.dual_size(k), at.slope(k), at.square(k)};
  const double excess = std::abs(at.intercept(k));
  const double heavier = 0.5 * (at.slope(k) + excess);
  const double share = excess > 0.0 ? excess / heavier : 0.0;
  const double positive = at.dual_positive(k);
  sums.value -= share * (at.intercept(k) < 0.0 ? positive : at.dual(k) - positive);
  return bound(sums, dual_w, share * std::sqrt(sums.square) * width_) - of_spreads(w, at.curvature(k));
}

struct ExactDual::Side {
  double theta = 0.0;
  double dual = 0.0;  ///< sum of c theta offset
  double dual_size = 0.0;
  std::vector<DoubleDouble> sum;
};

ExactDual::ExactDual(const LocalObjective& problem, const ConstVectorRef& centre)
    : problem_(problem),
      centre_(centre),
      column_(1, problem.n_features()),
      scratch_(std::max(problem.n_features(), problem.data().covariances().scratch_size({1, 1}))),
      sides_(2) {
  for (Side& side : sides_) side.sum.resize(static_cast<std::size_t>(problem.n_features()), DoubleDouble(0.0));
}

ExactDual::~ExactDual() = default;
ExactDual::ExactDual(ExactDual&&) noexcept = default;

void ExactDual::add(Index row, double theta, double density, const ConstVectorRef& v, const Matrix& w) {
  const double c = problem_.weight(row);
  const double y = problem_.sign(row, 0);
  Side& side = sides_[y > 0.0 ? 0 : 1];
  const Index d = problem_.n_features();
  const Rows one{row, 1};
  const auto at = [&side](Index j) -> DoubleDouble& { return side.sum[static_cast<std::size_t>(j)]; };

  const double a = c * theta * y;
  side.theta += c * theta;
  side.dual += c * theta * problem_.offset(row);
  side.dual_size += c * theta * std::abs(problem_.offset(row));
  const auto x = problem_.data().means().block(one, scratch_.data());
  for (Index j = 0; j < d; ++j) {
    at(j).add_product(a, x(0, j));
    at(j).add_product(-a, centre_(j));
  }
  if (problem_.all_certain() || density == 0.0) return;

  const Covariances& covariances = problem_.data().covariances();
  if (const Factors* factors = covariances.factors()) {
    const double q = problem_.spread_norm();
    Vector p = v;
    if (v.size() == 0) {
      p.resize(factors->rank(row));
      factors->project(one, w.row(0).transpose(), p, scratch_.data());
      turn_to_slope(p, q);
    }
    const double size = norm(p, conjugate(q));
    if (size == 0.0) return;
    p *= c * (v.size() == 0 ? density : std::min(density, size)) / size;
    for (Index k = 0; k < p.size(); ++k) {
      factors->combine(one, Vector::Unit(p.size(), k), column_, scratch_.data());
      for (Index j = 0; j < d; ++j) at(j).add_product(-p(k), column_(0, j));
    }
    return;
  }
  ExactMatrix matrix(problem_);
  matrix.read(one, false);
  std::vector<DoubleDouble> product;
  const double square = matrix.multiply(w, product);
  if (!(square > 0.0)) return;
  const double scale = -c * density / std::sqrt(square);
  for (Index j = 0; j < d; ++j) at(j).add_product(scale, product[static_cast<std::size_t>(j)]);
}

Vector ExactDual::gradient() const {
  Vector total(problem_.n_features());
  for (Index j = 0; j < total.size(); ++j) {
    DoubleDouble entry = sides_[0].sum[static_cast<std::size_t>(j)];
    entry.add_product(1.0, sides_[1].sum[static_cast<std::size_t>(j)]);
    total(j) = entry.value();
  }
  return total;
}

double ExactDual::bound() const {
  constexpr double digits = 16.0 * unit;
  double factor[2] = {1.0, 1.0};
  if (problem_.fit_intercept()) {
    factor[0] = std::min(1.0, sides_[1].theta / sides_[0].theta);
    factor[1] = std::min(1.0, sides_[0].theta / sides_[1].theta);
  }
  const double root = std::sqrt(2.0 * problem_.regularisation());
  double square = 0.0;
  for (std::size_t j = 0; j < sides_[0].sum.size(); ++j) {
    const double entry = (factor[0] * sides_[0].sum[j].value() + factor[1] * sides_[1].sum[j].value()) / root;
    square += entry * entry;
  }
  const double dual = factor[0] * sides_[0].dual + factor[1] * sides_[1].dual;
  const double size = factor[0] * sides_[0].dual_size + factor[1] * sides_[1].dual_size;
  return best_scaled(dual - size * (digits + unit * static_cast<double>(problem_.n_samples())),
                     square * (1.0 + digits));
}

ExactValues exact_values(const LocalObjective& problem, const ConstVectorRef& w, const ConstVectorRef& b,
                         const TargetScale& scale, bool as_stored) {
  constexpr double digits = 0x1p-49;
  check::same_size("w", w.size(), "objective", problem.n_features(), "features");
  const Index d = problem.n_features();
  const Chunks chunks(problem.n_samples(), 64);
  Matrix sums = Matrix::Zero(chunks.count(), b.size());
  Vector errors = Vector::Zero(chunks.count());
  const Loss& loss = *problem.loss();
  const double shift = problem.all_certain() ? 0.0 : loss.traits().shift;
  const Matrix in_units = w.transpose() / scale.unit;
  run_tasks(chunks.count(), problem.execution(), [&](Index chunk, int /*slot*/, Checkpoint& checkpoint) {
    ExactSpread spread(problem, as_stored);
    Vector scratch(d);
    for (Index i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      checkpoint();
      const Rows row = problem.rows(i, 1);
      const double c = problem.weight(row[0]);
      const double sign = problem.sign(row[0], 0);
      const auto x = problem.data().means().block(row, scratch.data()).row(0);
      DoubleDouble without_b(problem.offset(row[0]));
      without_b.add(scale.margin);
      for (Index j = 0; j < d; ++j) without_b.add_product(-sign * x(j), w(j));
      double s = problem.all_certain() ? 0.0 : std::hypot(spread(row, in_units), std::sqrt(problem.variance(row[0])));
      if (shift != 0.0) {  // psi(m + shift s, 0), where the digits of s may be all that is left
        without_b.add_product(shift * scale.unit, s);
        errors(chunk) += c * std::abs(shift) * s * spread.unit_error(row);
        s = 0.0;
      }
      for (Index k = 0; k < b.size(); ++k) {
        DoubleDouble deficit = without_b;
        deficit.add(-sign * b(k));
        const double m = deficit.value() / scale.unit;
        double value = 0.0;
        double slope_m = 0.0;
        double slope_s2 = 0.0;
        loss.first(1, &m, &s, &value, &slope_m, &slope_s2);
        sums(chunk, k) += c * value;
      }
    }
  });
  ExactValues out;
  out.value = sums.colwise().sum().transpose().array() + 0.5 * problem.regularisation() * in_units.squaredNorm();
  out.error = digits * out.value.array() + errors.sum();
  return out;
}

ExactValue exact_value(const LocalObjective& problem, const LinearModel& model, bool as_stored) {
  const ExactValues of_one = exact_values(problem, model.coef.row(0).transpose(), model.intercept, {}, as_stored);
  return {of_one.value(0), of_one.error(0)};
}

bool ExactDual::pays(const LocalObjective& objective) {
  constexpr double most = 2e6;  // products
  const auto n = static_cast<double>(objective.n_samples());
  const auto d = static_cast<double>(objective.n_features());
  if (cancels(objective)) return n * d * d * d <= 4.0 * most;
  return n * d * (objective.all_certain() ? 1.0 : d) <= most;
}

bool exact_value_pays(const LocalObjective& objective) {
  constexpr double most = 5e7;  // products
  const auto n = static_cast<double>(objective.n_samples());
  const auto d = static_cast<double>(objective.n_features());
  if (cancels(objective)) return n * d * d * d <= most;
  const Factors* factors = objective.all_certain() ? nullptr : objective.data().covariances().factors();
  const double columns = factors != nullptr ? static_cast<double>(total_rank(*factors, objective.n_samples())) : 0.0;
  return (n + columns) * d <= most;
}

bool exact_value_is_due(const LocalObjective& objective) {
  constexpr double most = 1e5;  // products
  const auto d = static_cast<double>(objective.n_features());
  return cancels(objective) && static_cast<double>(objective.n_samples()) * d * d <= most;
}

}  // namespace halosvm
