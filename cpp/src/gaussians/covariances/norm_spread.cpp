// Spreads |F_i'w|_q: factors of covariances come in; sizes of bounded errors and their gradients go out.

#include "halosvm/gaussians/covariances/norm_spread.hpp"

#include "gaussians/norms.hpp"
#include "halosvm/core/check.hpp"
#include "halosvm/gaussians/covariances/low_rank.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halosvm {

NormSpread::NormSpread(std::shared_ptr<const Covariances> base, double norm)
    : Covariances(check::given(base, "covariances")->n_samples(), check::given(base, "covariances")->n_features()),
      base_(std::move(base)),
      q_(conjugate(norm)),
      first_(base_->factors()) {
  check::require(norm >= 1.0, "norm", "is " + check::text(norm) + "; it must be >= 1");
  if (const auto* both = dynamic_cast<const LowRankCovariances*>(base_.get());
      both != nullptr && both->diagonal() != nullptr) {
    first_ = both;
    second_ = both->diagonal();
  }
  check::require(first_ != nullptr, "norm",
                 "is " + check::text(norm) +
                     ", but full covariances say nothing of the directions in which errors are " +
                     "bounded; give their factors as low-rank covariances, or take norm 2");
  for (Index i = 0; i < n_samples(); ++i) largest_rank_ = std::max(largest_rank_, rank(i));
  // |f|_q^2 <= r^(2/q - 1) |f|_2^2 for the r entries of a row f of F; for one entry they are the same.
  const bool one_entry = second_ == nullptr && dynamic_cast<const LowRankCovariances*>(base_.get()) == nullptr;
  const Index entries = largest_rank_ - (second_ != nullptr ? n_features() - 1 : 0);
  if (q_ < 2.0 && !one_entry && entries > 1) excess_ = std::pow(static_cast<double>(entries), 2.0 / q_ - 1.0);
}

Index NormSpread::scratch_size(const BlockShape& shape) const { return 2 * largest_rank_ + base_->scratch_size(shape); }

void NormSpread::bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                          double* scratch) const {
  for (Index i = 0; i < rows.count; ++i) {
    const Index r = rank(rows[i]);
    VectorMap p(scratch, r);
    VectorMap other(scratch + r, r);
    for (Index k = 0; k < W.rows(); ++k) {
      project({rows[i], 1}, W.row(k).transpose(), p, scratch + 2 * r);
      if (W.data() == V.data()) {
        const double size = norm(p, q_);
        out(k, i) = size * size;
      } else {
        turn_to_slope(p, q_);
        project({rows[i], 1}, V.row(k).transpose(), other, scratch + 2 * r);
        out(k, i) = p.dot(other);
      }
    }
  }
}

void NormSpread::add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W,
                                       MatrixRef sum, double* scratch) const {
  for (Index i = 0; i < rows.count; ++i) {
    const Index r = rank(rows[i]);
    VectorMap p(scratch, r);
    for (Index k = 0; k < W.rows(); ++k) {
      if (a(k, i) == 0.0) continue;
      project({rows[i], 1}, W.row(k).transpose(), p, scratch + r);
      turn_to_slope(p, q_);
      const double weight = a(k, i);
      add_combined({rows[i], 1}, ConstVectorMap(&weight, 1), p, sum.row(k).transpose(), scratch + r);
    }
  }
}

void NormSpread::products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const {
  for (Index i = 0; i < rows.count; ++i) {
    const Index r = rank(rows[i]);
    VectorMap p(scratch, r);
    project({rows[i], 1}, w, p, scratch + r);
    turn_to_slope(p, q_);
    combine({rows[i], 1}, p, out.row(i), scratch + r);
  }
}

void NormSpread::add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum,
                                        double* scratch) const {
  if (excess_ == 1.0) {
    base_->add_weighted_diagonals(rows, a, sum, scratch);
  } else {
    base_->add_weighted_diagonals(rows, excess_ * a, sum, scratch);
  }
}

void NormSpread::project(const Rows& rows, const ConstVectorRef& w, VectorRef p, double* scratch) const {
  if (second_ == nullptr) {
    first_->project(rows, w, p, scratch);
    return;
  }
  const Index begin = first_column(rows[0]);
  for (Index i = 0; i < rows.count; ++i) {
    const Index at = first_column(rows[i]) - begin;
    const Index r = first_->rank(rows[i]);
    first_->project({rows[i], 1}, w, p.segment(at, r), scratch);
    second_->project({rows[i], 1}, w, p.segment(at + r, n_features()), scratch);
  }
}

void NormSpread::combine(const Rows& rows, const ConstVectorRef& v, MatrixRef out, double* scratch) const {
  if (second_ == nullptr) {
    first_->combine(rows, v, out, scratch);
    return;
  }
  const Index begin = first_column(rows[0]);
  const Vector one = Vector::Ones(1);
  for (Index i = 0; i < rows.count; ++i) {
    const Index at = first_column(rows[i]) - begin;
    const Index r = first_->rank(rows[i]);
    second_->combine({rows[i], 1}, v.segment(at + r, n_features()), out.row(i), scratch);
    first_->add_combined({rows[i], 1}, one, v.segment(at, r), out.row(i).transpose(), scratch);
  }
}

void NormSpread::add_combined(const Rows& rows, const ConstVectorRef& a, const ConstVectorRef& v, VectorRef sum,
                              double* scratch) const {
  if (second_ == nullptr) {
    first_->add_combined(rows, a, v, sum, scratch);
    return;
  }
  const Index begin = first_column(rows[0]);
  for (Index i = 0; i < rows.count; ++i) {
    const Index at = first_column(rows[i]) - begin;
    const Index r = first_->rank(rows[i]);
    first_->add_combined({rows[i], 1}, a.segment(i, 1), v.segment(at, r), sum, scratch);
    second_->add_combined({rows[i], 1}, a.segment(i, 1), v.segment(at + r, n_features()), sum, scratch);
  }
}

void NormSpread::add_squares(const Rows& rows, const ConstVectorRef& t, MatrixRef sum, double* scratch) const {
  if (second_ == nullptr) {
    first_->add_squares(rows, t, sum, scratch);
    return;
  }
  const Index begin = first_column(rows[0]);
  for (Index i = 0; i < rows.count; ++i) {
    const Index at = first_column(rows[i]) - begin;
    const Index r = first_->rank(rows[i]);
    first_->add_squares({rows[i], 1}, t.segment(at, r), sum, scratch);
    second_->add_squares({rows[i], 1}, t.segment(at + r, n_features()), sum, scratch);
  }
}

}  // namespace halosvm
