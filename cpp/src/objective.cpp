#include "halosvm/objective.hpp"

#include "halosvm/check.hpp"
#include "halosvm/covariance/scaled.hpp"
#include "halosvm/covariance/zero.hpp"
#include "halosvm/moments.hpp"

#include <cmath>
#include <utility>

namespace halosvm {

Objective::Objective(Gaussians data, Labels labels, const double* weights, double regularisation,
                     std::shared_ptr<const Loss> loss, bool fit_intercept, Execution execution)
    : data_(std::move(data)),
      labels_(labels),
      weights_(weights),
      regularisation_(regularisation),
      loss_(std::move(loss)),
      fit_intercept_(fit_intercept),
      execution_(std::move(execution)) {
  check::require(n_samples() > 0 && n_features() > 0, "data", "must have at least one row and one column");
  check::require(labels.n_problems > 0, "n_problems", "must be positive");
  check::positive("regularisation", regularisation);

  const Index n_codes = labels.n_problems == 1 ? 2 : labels.n_problems;
  Vector totals = Vector::Zero(n_codes);
  for (Index i = 0; i < n_samples(); ++i) {
    const Index code = labels.codes[i];
    if (code < 0 || code >= n_codes) {
      check::fail_at("labels", i, -1, static_cast<double>(code), "codes go from 0 to " + std::to_string(n_codes - 1));
    }
    const double weight = weights_ != nullptr ? weights_[i] : 1.0;
    if (!(weight >= 0.0) || !std::isfinite(weight)) {
      check::fail_at("sample_weight", i, -1, weight, "a weight must be >= 0 and finite");
    }
    totals(code) += weight;
  }
  check::require(std::isfinite(totals.sum()), "sample_weight", "has an infinite sum");
  for (Index code = 0; code < n_codes; ++code) {
    check::require(totals(code) > 0.0, "labels",
                   "need a positive total weight in every class, but class code " + std::to_string(code) + " has " +
                       check::text(totals(code)));
  }
  weight_scale_ = 1.0 / totals.sum();
  weight_unit_ = std::ldexp(1.0, -std::ilogb(totals.sum()));
  total_ = totals.sum() * weight_unit_;
}

Objective::Workspace::Workspace(const Objective& objective, Index rows, Index n_problems)
    : m_(n_problems, rows),
      s_(n_problems, rows),
      value_(n_problems, rows),
      slope_m_(n_problems, rows),
      slope_s2_(n_problems, rows),
      sign_(n_problems, rows),
      weight_(rows),
      unscaled_(rows),
      means_(static_cast<std::size_t>(rows * objective.n_features())),
      covariances_(static_cast<std::size_t>(objective.data_.covariances().scratch_size({rows, n_problems}))) {}

ConstMatrixMap Objective::margins(const Rows& rows, Index first, const ConstMatrixRef& W, const ConstVectorRef& b,
                                  Workspace& work) const {
  const ConstMatrixMap X = data_.means().block(rows, work.means_.data());
  auto m = work.m_.topLeftCorner(W.rows(), rows.count);
  auto s = work.s_.topLeftCorner(W.rows(), rows.count);
  auto y = work.sign_.topLeftCorner(W.rows(), rows.count);
  multiply(X, W, m);
  for (Index k = 0; k < W.rows(); ++k) {
    labels_.signs(rows, first + k, y.row(k).data());
    m.row(k) = 1.0 - y.row(k).array() * (m.row(k).array() + b(k));
  }
  if (loss_->uses_spread()) {
    data_.covariances().bilinear(rows, W, W, s, work.covariances_.data());
    s = (s.array().max(0.0) + floor_ * floor_).sqrt();
  } else {
    s.setConstant(floor_);
  }
  return X;
}

void Objective::add_block(const Rows& rows, Index first, const ConstMatrixRef& W, const ConstVectorRef& b, double scale,
                          double value_scale, Workspace& work, Gradient& sum) const {
  const ConstMatrixMap X = margins(rows, first, W, b, work);
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
    sum.slope(k) += (c * a).sum();
    a *= -c * work.sign_.row(k).head(rows.count).array();
    work.slope_s2_.row(k).head(rows.count).array() *= c;
    sum.curvature(k) += work.slope_s2_.row(k).head(rows.count).sum();
    sum.value(k) += value_scale * (unscaled * work.value_.row(k).head(rows.count).array()).sum();
    sum.intercept(k) += a.sum();
  }
  add_weighted_rows(X, work.slope_m_.topLeftCorner(W.rows(), rows.count), sum.coef);
  if (loss_->uses_spread()) {
    data_.covariances().add_weighted_products(rows, work.slope_s2_.topLeftCorner(W.rows(), rows.count), W, sum.coef,
                                              work.covariances_.data());
  }
}

template <class Body>
void Objective::reduce(Gradient& sum, const Body& body) const {
  const Index n_problems = sum.value.size();
  const Index block = data_.block_rows();
  const Chunks chunks(n_samples(), data_.task_rows());
  std::vector<Gradient> partial(static_cast<std::size_t>(chunks.count()), Gradient(n_problems, n_features()));
  std::vector<Workspace> work(static_cast<std::size_t>(thread_count(chunks.count(), execution_)),
                              Workspace(*this, block, n_problems));
  run_tasks(chunks.count(), execution_, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    for (Index begin = chunks.begin(chunk); begin < chunks.end(chunk); begin += block) {
      checkpoint();
      const Rows rows = this->rows(begin, std::min(block, chunks.end(chunk) - begin));
      body(rows, work[static_cast<std::size_t>(slot)], partial[static_cast<std::size_t>(chunk)]);
    }
  });
  sum.set_zero();
  for (const Gradient& part : partial) {
    sum.value += part.value;
    sum.slope += part.slope;
    sum.curvature += part.curvature;
    sum.coef += part.coef;
    sum.intercept += part.intercept;
  }
}

void Objective::value_and_gradient(const ConstMatrixRef& W, const ConstVectorRef& b, Gradient& out) const {
  reduce(out, [&](const Rows& rows, Workspace& work, Gradient& sum) { add_block(rows, 0, W, b, 1.0, 1.0, work, sum); });
  out.value = out.value / total_ + 0.5 * regularisation_ * W.rowwise().squaredNorm();
  out.coef += regularisation_ * W;
  if (!fit_intercept_) out.intercept.setZero();
}

void Objective::hessian_vector(const ConstMatrixRef& W, const ConstVectorRef& b, const ConstMatrixRef& V,
                               const ConstVectorRef& v0, Gradient& out) const {
  const Index n_problems = W.rows();
  const Index block = data_.block_rows();
  // With a = dm/d(w,b) . (V, v0) and e = (S w / s) . V the product is K.0's: three sums of x_i, S_i w and S_i v.
  reduce(out, [&](const Rows& rows, Workspace& work, Gradient& sum) {
    const ConstMatrixMap X = margins(rows, 0, W, b, work);
    Matrix a(n_problems, block);
    Matrix e(n_problems, block);
    auto a_block = a.leftCols(rows.count);
    auto e_block = e.leftCols(rows.count);
    multiply(X, V, a_block);
    const bool spread = loss_->uses_spread();
    if (spread) data_.covariances().bilinear(rows, W, V, e_block, work.covariances_.data());
    Vector mm(rows.count);
    Vector ms(rows.count);
    Vector ss(rows.count);
    for (Index k = 0; k < n_problems; ++k) {
      loss_->first(rows.count, work.m_.row(k).data(), work.s_.row(k).data(), work.value_.row(k).data(),
                   work.slope_m_.row(k).data(), work.slope_s2_.row(k).data());
      loss_->second(rows.count, work.m_.row(k).data(), work.s_.row(k).data(), mm.data(), ms.data(), ss.data());
      for (Index i = 0; i < rows.count; ++i) {
        const double y = work.sign_(k, i);
        const double c = weight(rows[i]);
        const double inverse = spread && work.s_(k, i) >= smallest_spread ? 1.0 / work.s_(k, i) : 0.0;
        const double dm = -y * (a(k, i) + (fit_intercept_ ? v0(k) : 0.0));
        const double ds = spread ? e(k, i) * inverse : 0.0;
        a(k, i) = -y * c * (mm(i) * dm + ms(i) * ds);
        work.slope_s2_(k, i) *= c;
        e(k, i) = c * (ms(i) * dm + ss(i) * ds) * inverse - work.slope_s2_(k, i) * ds * inverse;
        sum.intercept(k) += a(k, i);
      }
    }
    add_weighted_rows(X, a_block, sum.coef);
    if (spread) {
      double* scratch = work.covariances_.data();
      data_.covariances().add_weighted_products(rows, e_block, W, sum.coef, scratch);
      data_.covariances().add_weighted_products(rows, work.slope_s2_.leftCols(rows.count), V, sum.coef, scratch);
    }
  });
  out.coef += regularisation_ * V;
  if (!fit_intercept_) out.intercept.setZero();
}

Vector Objective::value_at_zero() const {
  if (!fit_intercept_) return Vector::Ones(n_problems());
  Vector positive = Vector::Zero(n_problems());
  const Rows all = rows(0, n_samples());
  for (Index i = 0; i < all.count; ++i) {
    for (Index k = 0; k < n_problems(); ++k) positive(k) += sign(all[i], k) > 0.0 ? unscaled_weight(all[i]) : 0.0;
  }
  positive /= total_;
  return 2.0 * positive.cwiseMin(Vector::Ones(n_problems()) - positive);
}

Objective Objective::only(Index k) const {
  Objective single = *this;
  if (n_problems() > 1) single.labels_.positive = k;
  single.labels_.n_problems = 1;
  return single;
}

Objective Objective::sampled(std::vector<Index> rows) const {
  Objective part = *this;
  double total = 0.0;
  for (const Index row : rows) total += weight(row);
  part.weight_scale_ = weight_scale_ / total;
  part.total_ = total_ * total;
  part.sample_ = std::make_shared<const std::vector<Index>>(std::move(rows));
  return part;
}

Objective Objective::on(Gaussians data) const {
  check::same_size("data", data.n_samples(), "labels", data_.n_samples(), "rows");
  Objective other = *this;
  other.data_ = std::move(data);
  return other;
}

Objective Objective::with_spreads_times(double factor) const {
  std::shared_ptr<const Covariances> scaled;
  if (factor > 0.0) {
    scaled = std::make_shared<ScaledCovariances>(data_.shared_covariances(), factor * factor);
  } else {
    scaled = std::make_shared<ZeroCovariances>(data_.n_samples(), n_features());
  }
  return on({data_.means(), std::move(scaled)});
}

Objective Objective::smoothed(double floor) const {
  Objective smooth = *this;
  smooth.floor_ = floor;
  if (!loss_->uses_spread()) {  // the hinge is the expected hinge of certain points
    smooth.loss_ = make_loss("expected_hinge");
    smooth.data_ = Gaussians(data_.means(), std::make_shared<ZeroCovariances>(data_.n_samples(), n_features()));
  }
  return smooth;
}

Vector Objective::dual_bound(const ConstMatrixRef& W, const Gradient& at, const ConstVectorRef& centre) const {
  return at.slope - (dual_coef(W, at, centre) / std::sqrt(2.0 * regularisation_)).rowwise().squaredNorm();
}

Matrix Objective::dual_coef(const ConstMatrixRef& W, const Gradient& at, const ConstVectorRef& centre) const {
  return regularisation_ * W - at.coef + at.intercept * centre.transpose();
}

Vector Objective::lower_bound(const ConstMatrixRef& W, const ConstVectorRef& b) const {
  constexpr double no_gradient = 1e-10;  // a larger slope in b means a kink that the gradient does not resolve
  const Vector centre = moments(*this).centre;
  Gradient at(W.rows(), n_features());
  Vector best = Vector::Zero(W.rows());  // J is never negative
  value_and_gradient(W, exact_intercept(W, b), at);
  if (at.intercept.cwiseAbs().maxCoeff() <= no_gradient) best = best.cwiseMax(dual_bound(W, at, centre));
  if (loss_->uses_spread() && best.minCoeff() > 0.0) return best;

  for (const double floor : {0.1, 0.01, 0.001, 0.0001}) {
    const Objective smooth = smoothed(floor);
    smooth.value_and_gradient(W, smooth.exact_intercept(W, b), at);
    best = best.cwiseMax(dual_bound(W, at, centre));
  }
  return best;
}

}  // namespace halosvm
