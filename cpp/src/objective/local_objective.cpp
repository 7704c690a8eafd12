// Passes over the examples: models come in; values, gradients, Hessian-vector products and bounds go out.

#include "halosvm/objective/local_objective.hpp"

#include "halosvm/core/check.hpp"
#include "objective/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halosvm {
namespace {

/// min over b of p psi(margin - b, 0) + (1 - p) psi(margin + b, 0): J(0) where a share p has y = 1.
double least_value_of_two(const Loss& loss, double p) {
  const LossTraits& traits = loss.traits();
  if (traits.has_dual()) return 2.0 * std::min(p, 1.0 - p);
  double value[2];
  double slope[2];
  double unused[2];
  const auto look = [&](double b) {
    const double m[2] = {traits.margin - b, traits.margin + b};
    const double s[2] = {0.0, 0.0};
    loss.first(2, m, s, value, slope, unused);
    return (1.0 - p) * slope[1] - p * slope[0];
  };
  double low = -1.0;
  double high = 1.0;
  while (look(low) > 0.0 && low > -1e6) low *= 2.0;
  while (look(high) < 0.0 && high < 1e6) high *= 2.0;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (look(middle) < 0.0 ? low : high) = middle;
  }
  look(0.5 * (low + high));
  return p * value[0] + (1.0 - p) * value[1];
}

}  // namespace

LocalObjective::LocalObjective(Gaussians data, Targets targets, const double* weights, double regularisation,
                               std::shared_ptr<const Loss> loss, bool fit_intercept, Execution execution,
                               Classes classes)
    : data_(std::move(data)),
      targets_(targets),
      weights_(weights),
      regularisation_(regularisation),
      loss_(std::move(loss)),
      fit_intercept_(fit_intercept),
      execution_(std::move(execution)),
      passes_(std::make_shared<Kept<PassMemory>>()) {
  check::require(n_samples() > 0 && n_features() > 0, "data", "must have at least one row and one column");
  check::require(targets.n_problems > 0, "n_problems", "must be positive");
  check::require(targets.positive == 0 || targets.positive == 1 || targets.n_problems > 1, "positive",
                 "is " + std::to_string(targets.positive) + "; with one problem it must be 0 or 1");
  check::given(targets.codes, "labels");
  check::given(loss_, "loss");
  check::positive("regularisation", regularisation);
  data_.means().check_once("means", execution_);
  if (loss_->uses_spread()) data_.covariances().check_once("covariances", execution_);

  const Index n_codes = targets.n_problems == 1 ? 2 : targets.n_problems;
  Vector totals = Vector::Zero(n_codes);
  for (Index i = 0; i < n_samples(); ++i) {
    const Index code = targets.codes[i];
    if (code < 0 || code >= n_codes) {
      check::fail_at("labels", i, -1, static_cast<double>(code), "codes go from 0 to " + std::to_string(n_codes - 1));
    }
    const double weight = weights_ != nullptr ? weights_[i] : 1.0;
    if (!(weight >= 0.0) || !std::isfinite(weight)) {
      check::fail_at("sample_weight", i, -1, weight, "a weight must be >= 0 and finite");
    }
    totals(code) += weight;
  }
  if (!loss_->uses_spread()) targets_.variances = nullptr;
  read_offsets();
  check::require(std::isfinite(totals.sum()), "sample_weight", "has an infinite sum");
  for (Index code = 0; code < n_codes && classes == Classes::all; ++code) {
    check::require(totals(code) > 0.0, "labels",
                   "need a positive total weight in every class, but class code " + std::to_string(code) + " has " +
                       check::text(totals(code)));
  }
  check::require(totals.sum() > 0.0, "sample_weight", "must not be 0 for all examples");
  weight_scale_ = 1.0 / totals.sum();
  weight_unit_ = std::ldexp(1.0, -std::ilogb(totals.sum()));
  total_ = totals.sum() * weight_unit_;
}

void LocalObjective::read_offsets() {
  largest_offset_ = std::abs(loss_->traits().margin);
  if (targets_.offsets != nullptr) {
    largest_offset_ = 0.0;
    for (Index i = 0; i < n_samples(); ++i) {
      const double offset = targets_.offsets[i];
      if (!std::isfinite(offset)) check::fail_at("offsets", i, -1, offset, "an offset must be finite");
      largest_offset_ = std::max(largest_offset_, std::abs(offset));
    }
  }
  check::require(targets_.variances == nullptr || loss_->traits().shift == 0.0, "variances",
                 "of targets are for expected losses, not for those of bounded errors");
  for (Index i = 0; targets_.variances != nullptr && i < n_samples(); ++i) {
    const double variance = targets_.variances[i];
    if (!(variance >= 0.0) || !std::isfinite(variance)) {
      check::fail_at("variances", i, -1, variance, "a variance must be >= 0 and finite");
    }
  }
}

LocalObjective::Workspace::Workspace(const LocalObjective& objective, Index rows, Index n_problems)
    : m_(n_problems, rows),
      s_(n_problems, rows),
      value_(n_problems, rows),
      slope_m_(n_problems, rows),
      slope_s2_(n_problems, rows),
      sign_(n_problems, rows),
      weight_(rows),
      unscaled_(rows),
      means_(static_cast<std::size_t>(objective.data_.means().scratch_size(rows, n_problems))),
      covariances_(static_cast<std::size_t>(objective.data_.covariances().scratch_size({rows, n_problems}))),
      kept_(static_cast<std::size_t>(objective.data_.covariances().kept_size({rows, n_problems}))) {}

void LocalObjective::margins(const Rows& rows, Index first, const ConstMatrixRef& W, const ConstVectorRef& b,
                             Workspace& work) const {
  auto m = work.m_.topLeftCorner(W.rows(), rows.count);
  auto s = work.s_.topLeftCorner(W.rows(), rows.count);
  auto y = work.sign_.topLeftCorner(W.rows(), rows.count);
  data_.means().multiply(rows, W, m, work.means_.data());
  for (Index k = 0; k < W.rows(); ++k) {
    targets_.signs(rows, first + k, y.row(k).data());
    m.row(k) = -y.row(k).array() * (m.row(k).array() + b(k));
  }
  if (targets_.offsets != nullptr) {
    for (Index i = 0; i < rows.count; ++i) m.col(i).array() += targets_.offsets[rows[i]];
  } else {
    m.array() += loss_->traits().margin;
  }
  if (loss_->uses_spread()) {
    data_.covariances().squares(rows, W, s, work.kept_.data(), work.covariances_.data());
    s = s.array().max(0.0) + floor_ * floor_;
    for (Index i = 0; has_variances() && i < rows.count; ++i) s.col(i).array() += variance(rows[i]);
    s = s.array().sqrt();
  } else {
    s.setConstant(floor_);
  }
}

void LocalObjective::add_block(const Rows& rows, Index first, const ConstMatrixRef& W, const ConstVectorRef& b,
                               double scale, double value_scale, Workspace& work, Evaluation& sum) const {
  margins(rows, first, W, b, work);
  auto c = work.weight_.head(rows.count).transpose().array();
  auto unscaled = work.unscaled_.head(rows.count).transpose().array();
  for (Index i = 0; i < rows.count; ++i) {
    c(i) = scale * weight(rows[i]);
    unscaled(i) = unscaled_weight(rows[i]);
  }
  for (Index k = 0; k < W.rows(); ++k) {
    double* value = work.value_.row(k).data();
    double* slope_m = work.slope_m_.row(k).data();
    double* slope_s2 = work.slope_s2_.row(k).data();
    loss_->first(rows.count, work.m_.row(k).data(), work.s_.row(k).data(), value, slope_m, slope_s2);
    auto a = work.slope_m_.row(k).head(rows.count).array();
    sum.slope(k) += (c * a.abs()).sum();
    if (!has_plain_dual()) add_dual(rows, k, work, sum);
    const auto phi = work.slope_s2_.row(k).head(rows.count).array() * work.s_.row(k).head(rows.count).array();
    sum.square(k) += (c * (a.square() + phi.square())).sum();
    a *= -c * work.sign_.row(k).head(rows.count).array();
    work.slope_s2_.row(k).head(rows.count).array() *= c;
    sum.curvature(k) += work.slope_s2_.row(k).head(rows.count).sum();
    sum.value(k) += value_scale * (unscaled * work.value_.row(k).head(rows.count).array()).sum();
    sum.intercept(k) += a.sum();
  }
  data_.means().add_weighted_rows(rows, work.slope_m_.topLeftCorner(W.rows(), rows.count), sum.coef,
                                  work.means_.data());
  if (loss_->uses_spread()) {
    data_.covariances().add_kept_products(rows, work.slope_s2_.topLeftCorner(W.rows(), rows.count), W,
                                          work.kept_.data(), sum.coef, work.covariances_.data());
  }
}

void LocalObjective::add_dual(const Rows& rows, Index k, const Workspace& work, Evaluation& sum) const {
  const bool homogeneous = loss_->traits().homogeneous;
  for (Index i = 0; i < rows.count; ++i) {
    const double theta = work.slope_m_(k, i);
    // |(R'w, sigma)| >= (w'S w0 + sigma^2) / s(w0): the target's own variance is a constant of the minorant.
    const double constant = work.slope_s2_(k, i) * variance(rows[i]);
    const double at_offset = theta * offset(rows[i]);
    double part = at_offset + constant;
    double size = std::abs(at_offset) + constant;
    if (!homogeneous) {  // otherwise psi = theta m + phi s, also where a floor has made s larger
      const double along_m = theta * work.m_(k, i);
      const double along_s = work.slope_s2_(k, i) * work.s_(k, i) * work.s_(k, i);
      part += work.value_(k, i) - along_m - along_s;
      size += work.value_(k, i) + std::abs(along_m) + along_s;
    }
    sum.dual(k) += work.weight_(i) * part;
    sum.dual_size(k) += work.weight_(i) * size;
    if (work.sign_(k, i) * theta > 0.0) sum.dual_positive(k) += work.weight_(i) * part;
  }
}

/// Of passes over the examples of this and of objectives made of it.
struct LocalObjective::PassMemory : BlockMemory<Evaluation, Workspace> {
  Index problems() const { return sums.empty() ? 0 : sums.front().value.size(); }
};

template <class Body>
void LocalObjective::reduce(Evaluation& sum, const Body& body) const {
  const Index n_problems = sum.value.size();
  const Index block = data_.block_rows();
  std::unique_ptr<PassMemory> memory = passes_->take();
  if (!memory || memory->problems() != n_problems) memory = std::make_unique<PassMemory>();
  sum_over_blocks(
      Chunks(n_samples(), data_.task_rows()), block, execution_, *memory,
      [&] { return Evaluation(n_problems, n_features()); }, [&] { return Workspace(*this, block, n_problems); },
      [&](Index begin, Index count, Workspace& work, Evaluation& part) { body(rows(begin, count), work, part); }, sum);
  passes_->give(std::move(memory));
}

void LocalObjective::value_and_gradient(const ConstMatrixRef& W, const ConstVectorRef& b, Evaluation& out) const {
  check_point(W, b);
  out.check_shape("out", n_problems(), n_features());
  reduce(out,
         [&](const Rows& rows, Workspace& work, Evaluation& sum) { add_block(rows, 0, W, b, 1.0, 1.0, work, sum); });
  out.value = out.value / total_ + 0.5 * regularisation_ * W.rowwise().squaredNorm();
  out.coef += regularisation_ * W;
  if (has_plain_dual()) {  // theta >= 0, psi = theta m + phi s
    const double margin = loss_->traits().margin;
    out.dual = margin * out.slope;
    out.dual_positive = 0.5 * margin * (out.slope - out.intercept);
    out.dual_size = out.dual;
  }
  if (!fit_intercept_) out.intercept.setZero();
}

void LocalObjective::evaluate(const ConstMatrixRef& W, const ConstVectorRef& b, double floor, Evaluation& out) const {
  if (floor > 0.0) {
    smoothed(floor).value_and_gradient(W, b, out);
  } else {
    value_and_gradient(W, b, out);
  }
}

Vector LocalObjective::exact_intercept(const ConstMatrixRef& W, const ConstVectorRef& guess, double floor) const {
  return floor > 0.0 ? smoothed(floor).exact_intercept(W, guess) : exact_intercept(W, guess);
}

void LocalObjective::hessian_vector(const ConstMatrixRef& W, const ConstVectorRef& b, const ConstMatrixRef& V,
                                    const ConstVectorRef& v0, Evaluation& out) const {
  const Index n_problems = W.rows();
  const Index block = data_.block_rows();
  check_point(W, b);
  check_point(V, v0);
  out.check_shape("out", n_problems, n_features());
  if (spread_norm() != 2.0) check::fail("norm", "must be 2 for Hessians");
  // With a = dm/d(w,b) . (V, v0) and e = (S w / s) . V the product is K.0's: three sums of x_i, S_i w and S_i v.
  reduce(out, [&](const Rows& rows, Workspace& work, Evaluation& sum) {
    margins(rows, 0, W, b, work);
    if (work.second_.size() == 0) {
      work.along_m_.resize(n_problems, block);
      work.along_s_.resize(n_problems, block);
      work.second_.resize(3, block);
    }
    auto a = work.along_m_.leftCols(rows.count);
    auto e = work.along_s_.leftCols(rows.count);
    data_.means().multiply(rows, V, a, work.means_.data());
    const bool spread = loss_->uses_spread();
    if (spread) data_.covariances().bilinear(rows, W, V, e, work.covariances_.data());
    double* mm = work.second_.row(0).data();
    double* ms = work.second_.row(1).data();
    double* ss = work.second_.row(2).data();
    for (Index k = 0; k < n_problems; ++k) {
      loss_->first(rows.count, work.m_.row(k).data(), work.s_.row(k).data(), work.value_.row(k).data(),
                   work.slope_m_.row(k).data(), work.slope_s2_.row(k).data());
      loss_->second(rows.count, work.m_.row(k).data(), work.s_.row(k).data(), mm, ms, ss);
      for (Index i = 0; i < rows.count; ++i) {
        const double y = work.sign_(k, i);
        const double c = weight(rows[i]);
        const double inverse = spread && work.s_(k, i) >= smallest_spread ? 1.0 / work.s_(k, i) : 0.0;
        const double dm = -y * (a(k, i) + (fit_intercept_ ? v0(k) : 0.0));
        const double ds = spread ? e(k, i) * inverse : 0.0;
        a(k, i) = -y * c * (mm[i] * dm + ms[i] * ds);
        work.slope_s2_(k, i) *= c;
        e(k, i) = c * (ms[i] * dm + ss[i] * ds) * inverse - work.slope_s2_(k, i) * ds * inverse;
        sum.intercept(k) += a(k, i);
      }
    }
    data_.means().add_weighted_rows(rows, a, sum.coef, work.means_.data());
    if (spread) {
      double* scratch = work.covariances_.data();
      data_.covariances().add_weighted_products(rows, e, W, sum.coef, scratch);
      data_.covariances().add_weighted_products(rows, work.slope_s2_.leftCols(rows.count), V, sum.coef, scratch);
    }
  });
  out.coef += regularisation_ * V;
  if (!fit_intercept_) out.intercept.setZero();
}

double LocalObjective::value_at_origin() const {
  if (has_plain_targets()) return Objective::value_at_origin();
  Evaluation at(n_problems(), n_features());
  value_and_gradient(Matrix::Zero(n_problems(), n_features()), Vector::Zero(n_problems()), at);
  return at.value.maxCoeff();
}

bool LocalObjective::has_many_kinks() const {
  constexpr double many = 0.1;
  constexpr Index few = 512;
  if (!loss_->traits().kinked) return false;
  if (kinked_everywhere()) return true;
  const Covariances& covariances = data_.covariances();
  // Of no symmetry, so that factors that sum to 0 show.
  const Matrix direction = Vector::LinSpaced(n_features(), 1.0, 2.0).cwiseSqrt().transpose();
  std::vector<double> scratch(static_cast<std::size_t>(covariances.scratch_size({1, 1})));
  Matrix square(1, 1);
  const Index n = n_samples();
  const Index m = std::min(few, n);
  Index certain = 0;
  for (Index j = 0; j < m; ++j) {
    const Index row = rows(j * n / m, 1)[0];
    covariances.bilinear({row, 1}, direction, direction, square, scratch.data());
    if (square(0, 0) + variance(row) == 0.0) ++certain;
  }
  return static_cast<double>(certain) >= many * static_cast<double>(m);
}

Vector LocalObjective::value_at_zero() const {
  if (!has_plain_targets()) return Objective::value_at_zero();
  if (!fit_intercept_) return Vector::Constant(n_problems(), value_at_origin());
  Vector positive = Vector::Zero(n_problems());
  const Rows all = rows(0, n_samples());
  for (Index i = 0; i < all.count; ++i) {
    for (Index k = 0; k < n_problems(); ++k) positive(k) += sign(all[i], k) > 0.0 ? unscaled_weight(all[i]) : 0.0;
  }
  positive /= total_;
  return positive.unaryExpr([this](double share) { return least_value_of_two(*loss_, share); });
}

LocalObjective LocalObjective::only(Index k) const {
  check::require(k >= 0 && k < n_problems(), "k", "is " + std::to_string(k) + "; there is no such problem");
  LocalObjective single = *this;
  if (n_problems() > 1) single.targets_.positive = k;
  single.targets_.n_problems = 1;
  single.passes_ = std::make_shared<Kept<PassMemory>>();
  return single;
}

LocalObjective LocalObjective::sampled(std::vector<Index> rows) const {
  LocalObjective part = *this;
  double total = 0.0;
  for (const Index row : rows) {
    check::require(row >= 0 && row < data_.n_samples(), "rows", "hold " + std::to_string(row) + ", which is none");
    total += weight(row);
  }
  check::require(total > 0.0, "rows", "have no weight");
  part.weight_scale_ = weight_scale_ / total;
  part.total_ = total_ * total;
  part.sample_ = std::make_shared<const std::vector<Index>>(std::move(rows));
  return part;
}

LocalObjective LocalObjective::on(Gaussians data) const {
  check::same_size("data", data.n_samples(), "labels", data_.n_samples(), "rows");
  LocalObjective other = *this;
  other.data_ = std::move(data);
  other.passes_ = std::make_shared<Kept<PassMemory>>();
  return other;
}

LocalObjective LocalObjective::with_loss(std::shared_ptr<const Loss> loss) const {
  LocalObjective other = *this;
  other.loss_ = check::given(std::move(loss), "loss");
  return other;
}

LocalObjective LocalObjective::with_spreads_times(double factor) const {
  check::not_negative("factor", factor);
  if (factor > 0.0) return on({data_.shared_means(), scaled_covariances(data_.shared_covariances(), factor * factor)});
  return on({data_.shared_means(), no_covariances(data_.n_samples(), n_features())});
}

LocalObjective LocalObjective::smoothed(double floor) const {
  check::not_negative("floor", floor);
  LocalObjective smooth = *this;
  if (!loss_->traits().kinked) return smooth;
  smooth.floor_ = floor;
  smooth.loss_ = smoothed_loss(loss_, floor);
  if (!loss_->uses_spread()) {
    smooth.data_ = Gaussians(data_.shared_means(), no_covariances(data_.n_samples(), n_features()));
    smooth.passes_ = std::make_shared<Kept<PassMemory>>();
  }
  return smooth;
}

Vector LocalObjective::lower_bound(const ConstMatrixRef& W, const ConstVectorRef& b) const {
  constexpr double no_gradient = 1e-10;  // a larger slope in b means a kink that the gradient does not resolve
  check_point(W, b);
  Vector best = Vector::Zero(W.rows());  // J is never negative
  const LossTraits& traits = loss_->traits();
  if (!traits.convex()) return best;
  const Moments about = moments();
  const Rounding rounding(*this, about);
  Evaluation at(W.rows(), n_features());
  Eigen::Array<bool, Eigen::Dynamic, 1> open = Eigen::Array<bool, Eigen::Dynamic, 1>::Constant(W.rows(), true);
  const auto look = [&](const LocalObjective& objective) {
    objective.value_and_gradient(W, objective.exact_intercept(W, b), at);
    const Matrix dual_w = dual_coef(W, at, about.centre);
    for (Index k = 0; k < W.rows(); ++k) {
      if (!open(k)) continue;
      best(k) = std::max(best(k), rounding.bound(at, k, W.row(k).transpose(), dual_w.row(k).transpose()));
    }
  };
  look(*this);
  const bool may_do = traits.uses_spread && traits.shift == 0.0;
  if (may_do) open = at.intercept.array().abs() > no_gradient || best.array() <= 0.0;
  if (!traits.kinked || !open.any()) return best;
  for (const double floor : {0.1, 0.01, 0.001, 0.0001}) look(smoothed(floor));
  return best;
}

}  // namespace halosvm
