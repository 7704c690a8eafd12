// S_i = F_i F_i' + diag(d_i): S w and w' S v from the factors, never expanded.

#include "halosvm/gaussians/covariances/low_rank.hpp"

#include "gaussians/covariances/small_factors.hpp"
#include "halosvm/core/check.hpp"

#include <algorithm>

namespace halosvm {
namespace {

/// Factor rows converted at a time, so that scratch memory does not grow with n_features.
Index strip_rows(Index n_features, Index rank) {
  return std::clamp<Index>(4096 / std::max<Index>(1, rank), 1, std::max<Index>(1, n_features));
}

}  // namespace

LowRankCovariances::LowRankCovariances(const ArrayView& factors, Index n_samples, Index n_features,
                                       const ArrayView& diagonal)
    : Covariances(n_samples, n_features),
      factors_(factors),
      uniform_rank_(factors.cols()),
      largest_rank_(factors.cols()) {
  check::same_size("factors", factors.rows(), "n_samples * n_features", n_samples * n_features, "rows");
  set_diagonal(diagonal);
}

LowRankCovariances::LowRankCovariances(const ArrayView& factors, const Index* offsets, Index n_samples,
                                       Index n_features, const ArrayView& diagonal)
    : Covariances(n_samples, n_features), factors_(factors), offsets_(offsets) {
  check::require(check::given(offsets, "offsets")[0] == 0, "offsets", "must begin with 0");
  for (Index i = 0; i < n_samples; ++i) {
    check::require(rank(i) >= 0, "offsets", "must not decrease");
    largest_rank_ = std::max(largest_rank_, rank(i));
  }
  check::same_size("factors", factors.rows() * factors.cols(), "offsets", offsets[n_samples] * n_features, "values");
  set_diagonal(diagonal);
}

void LowRankCovariances::set_diagonal(const ArrayView& diagonal) {
  if (diagonal.empty()) return;
  check::same_size("diagonal", diagonal.rows(), "factors", n_samples(), "rows");
  check::same_size("diagonal", diagonal.cols(), "factors", n_features(), "columns");
  diagonal_.emplace(diagonal);
}

/// The same one for all, for which there are loops of their own.
bool LowRankCovariances::has_small_rank() const {
  return offsets_ == nullptr && uniform_rank_ >= 1 && uniform_rank_ <= largest_small_rank;
}

Index LowRankCovariances::row_bytes() const {
  const Index n = std::max<Index>(1, n_samples());
  const Index factor = (factors_.row_bytes() * factors_.rows() + n - 1) / n;
  return factor + (diagonal_ ? diagonal_->row_bytes() : 0);
}

Index LowRankCovariances::scratch_size(const BlockShape& shape) const {
  const Index strip = strip_rows(n_features(), largest_rank_) * largest_rank_;
  const Index wide = has_small_rank() ? n_features() * uniform_rank_ : 0;
  return std::max(2 * shape.rows * largest_rank_ + std::max(3 * strip, wide),
                  diagonal_ ? diagonal_->scratch_size(shape) : 0);
}

ConstMatrixMap LowRankCovariances::factor(Index row, Index begin, Index count, double* scratch) const {
  const Index r = rank(row);
  return {factors_.values(first_column(row) * n_features() + begin * r, count * r, scratch), count, r};
}

void LowRankCovariances::copy_factor(Index row, Matrix& out) const {
  out.resize(n_features(), rank(row));
  if (out.size() == 0) return;
  const ConstMatrixMap in_place_or_out = factor(row, 0, n_features(), out.data());
  if (in_place_or_out.data() != out.data()) out = in_place_or_out;
}

void LowRankCovariances::root(Index row, Matrix& out) const {
  copy_factor(row, out);
  if (!diagonal_) return;
  Matrix own;
  diagonal_->root(row, own);
  out.conservativeResize(Eigen::NoChange, out.cols() + own.cols());
  out.rightCols(own.cols()) = own;
}

void LowRankCovariances::project_one(Index row, const ConstVectorRef& w, VectorRef p, double* scratch) const {
  const Index strip = strip_rows(n_features(), largest_rank_);
  p.setZero();
  for (Index begin = 0; begin < n_features(); begin += strip) {
    const Index count = std::min(strip, n_features() - begin);
    p.noalias() += factor(row, begin, count, scratch).transpose() * w.segment(begin, count);
  }
}

void LowRankCovariances::add_one(Index row, const ConstVectorRef& v, VectorRef sum, double* scratch) const {
  const Index strip = strip_rows(n_features(), largest_rank_);
  for (Index begin = 0; begin < n_features(); begin += strip) {
    const Index count = std::min(strip, n_features() - begin);
    sum.segment(begin, count).noalias() += factor(row, begin, count, scratch) * v;
  }
}

void LowRankCovariances::project(const Rows& rows, const ConstVectorRef& w, VectorRef p, double* scratch) const {
  const Index first = first_column(rows[0]);
  for (Index i = 0; i < rows.count; ++i) {
    project_one(rows[i], w, p.segment(first_column(rows[i]) - first, rank(rows[i])), scratch);
  }
}

void LowRankCovariances::combine(const Rows& rows, const ConstVectorRef& v, MatrixRef out, double* scratch) const {
  const Index first = first_column(rows[0]);
  out.setZero();
  for (Index i = 0; i < rows.count; ++i) {
    add_one(rows[i], v.segment(first_column(rows[i]) - first, rank(rows[i])), out.row(i).transpose(), scratch);
  }
}

void LowRankCovariances::add_combined(const Rows& rows, const ConstVectorRef& a, const ConstVectorRef& v, VectorRef sum,
                                      double* scratch) const {
  const Index first = first_column(rows[0]);
  for (Index i = 0; i < rows.count; ++i) {
    if (a(i) == 0.0) continue;
    const Index r = rank(rows[i]);
    VectorMap scaled(scratch, r);
    scaled = a(i) * v.segment(first_column(rows[i]) - first, r);
    add_one(rows[i], scaled, sum, scratch + r);
  }
}

void LowRankCovariances::project_all(const Rows& rows, const ConstVectorRef& w, double* p, double* scratch) const {
  if (!has_small_rank()) {
    Index at = 0;
    for (Index i = 0; i < rows.count; at += rank(rows[i]), ++i) {
      project_one(rows[i], w, VectorMap(p + at, rank(rows[i])), scratch);
    }
    return;
  }
  const Index r = uniform_rank_;
  const Index size = n_features() * r;
  for (Index j = 0; j < n_features(); ++j) std::fill_n(scratch + j * r, r, w(j));
  with_small_rank(r, [&](auto columns) {
    for (Index i = 0; i < rows.count; ++i) {
      factors_.as_stored(rows[i] * size, [&](const auto* factor) {
        project_small<columns.value>(factor, scratch, size, p + i * columns.value);
      });
    }
  });
}

void LowRankCovariances::add_all(const Rows& rows, const double* p, VectorRef sum, double* scratch) const {
  if (!has_small_rank()) {
    Index at = 0;
    for (Index i = 0; i < rows.count; at += rank(rows[i]), ++i) {
      add_one(rows[i], ConstVectorMap(p + at, rank(rows[i])), sum, scratch);
    }
    return;
  }
  const Index r = uniform_rank_;
  const Index size = n_features() * r;
  std::fill_n(scratch, size, 0.0);
  with_small_rank(r, [&](auto columns) {
    for (Index i = 0; i < rows.count; ++i) {
      factors_.as_stored(rows[i] * size, [&](const auto* factor) {
        add_small<columns.value>(factor, p + i * columns.value, size, scratch);
      });
    }
  });
  for (Index j = 0; j < n_features(); ++j) sum(j) += ConstVectorMap(scratch + j * r, r).sum();
}

void LowRankCovariances::bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                                  double* scratch) const {
  if (diagonal_) {
    diagonal_->bilinear(rows, W, V, out, scratch);
  } else {
    out.setZero();
  }
  const Index most = rows.count * largest_rank_;
  for (Index k = 0; k < W.rows(); ++k) {
    double* p = scratch;
    double* q = W.data() == V.data() ? p : scratch + most;
    project_all(rows, W.row(k).transpose(), p, scratch + 2 * most);
    if (q != p) project_all(rows, V.row(k).transpose(), q, scratch + 2 * most);
    for (Index i = 0; i < rows.count; ++i) {
      const Index r = rank(rows[i]);
      out(k, i) += ConstVectorMap(p, r).dot(ConstVectorMap(q, r));
      p += r;
      q += r;
    }
  }
}

void LowRankCovariances::add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W,
                                               MatrixRef sum, double* scratch) const {
  if (diagonal_) diagonal_->add_weighted_products(rows, a, W, sum, scratch);
  double* rest = scratch + rows.count * largest_rank_;
  for (Index k = 0; k < W.rows(); ++k) {
    project_all(rows, W.row(k).transpose(), scratch, rest);
    double* p = scratch;
    for (Index i = 0; i < rows.count; p += rank(rows[i]), ++i) VectorMap(p, rank(rows[i])) *= a(k, i);
    add_all(rows, scratch, sum.row(k).transpose(), rest);
  }
}

Index LowRankCovariances::kept_size(const BlockShape& shape) const {
  return shape.rows * shape.problems * largest_rank_;
}

void LowRankCovariances::squares(const Rows& rows, const ConstMatrixRef& W, MatrixRef out, double* kept,
                                 double* scratch) const {
  if (diagonal_) {
    diagonal_->bilinear(rows, W, W, out, scratch);
  } else {
    out.setZero();
  }
  for (Index k = 0; k < W.rows(); ++k) {
    project_all(rows, W.row(k).transpose(), kept, scratch);
    for (Index i = 0; i < rows.count; kept += rank(rows[i]), ++i) {
      out(k, i) += ConstVectorMap(kept, rank(rows[i])).squaredNorm();
    }
  }
}

void LowRankCovariances::add_kept_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W,
                                           const double* kept, MatrixRef sum, double* scratch) const {
  if (diagonal_) diagonal_->add_weighted_products(rows, a, W, sum, scratch);
  double* rest = scratch + rows.count * largest_rank_;
  for (Index k = 0; k < W.rows(); ++k) {
    double* p = scratch;
    for (Index i = 0; i < rows.count; ++i) {
      const Index r = rank(rows[i]);
      VectorMap(p, r) = a(k, i) * ConstVectorMap(kept, r);
      p += r;
      kept += r;
    }
    add_all(rows, scratch, sum.row(k).transpose(), rest);
  }
}

void LowRankCovariances::products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const {
  if (diagonal_) {
    diagonal_->products(rows, w, out, scratch);
  } else {
    out.setZero();
  }
  for (Index i = 0; i < rows.count; ++i) {
    const Index r = rank(rows[i]);
    VectorMap p(scratch, r);
    project_one(rows[i], w, p, scratch + r);
    add_one(rows[i], p, out.row(i).transpose(), scratch + r);
  }
}

void LowRankCovariances::add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum,
                                               double* scratch) const {
  if (diagonal_) diagonal_->add_weighted_matrices(rows, a, sum, scratch);
  const Index strip = strip_rows(n_features(), largest_rank_);
  double* other = scratch + strip * largest_rank_;
  for (Index i = 0; i < rows.count; ++i) {
    if (a(i) == 0.0) continue;
    for (Index row = 0; row < n_features(); row += strip) {
      const Index height = std::min(strip, n_features() - row);
      const ConstMatrixMap left = factor(rows[i], row, height, scratch);
      for (Index column = 0; column <= row; column += strip) {
        const Index width = std::min(strip, n_features() - column);
        sum.block(row, column, height, width).noalias() +=
            a(i) * left * factor(rows[i], column, width, other).transpose();
      }
    }
  }
}

void LowRankCovariances::add_squares(const Rows& rows, const ConstVectorRef& t, MatrixRef sum, double* scratch) const {
  const Index first = first_column(rows[0]);
  const Index strip = strip_rows(n_features(), largest_rank_);
  double* scaled = scratch + strip * largest_rank_;
  double* other = scaled + strip * largest_rank_;
  for (Index i = 0; i < rows.count; ++i) {
    const Index r = rank(rows[i]);
    const auto weights = t.segment(first_column(rows[i]) - first, r);
    for (Index row = 0; row < n_features() && r > 0; row += strip) {
      MatrixMap left(scaled, std::min(strip, n_features() - row), r);
      left = factor(rows[i], row, left.rows(), scratch) * weights.asDiagonal();
      for (Index column = 0; column <= row; column += strip) {
        const Index width = std::min(strip, n_features() - column);
        sum.block(row, column, left.rows(), width).noalias() +=
            left * factor(rows[i], column, width, other).transpose();
      }
    }
  }
}

void LowRankCovariances::add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum,
                                                double* scratch) const {
  if (diagonal_) diagonal_->add_weighted_diagonals(rows, a, sum, scratch);
  const Index strip = strip_rows(n_features(), largest_rank_);
  for (Index i = 0; i < rows.count; ++i) {
    for (Index begin = 0; begin < n_features(); begin += strip) {
      const Index count = std::min(strip, n_features() - begin);
      sum.segment(begin, count) += a(i) * factor(rows[i], begin, count, scratch).rowwise().squaredNorm();
    }
  }
}

void LowRankCovariances::prefetch(Index row) const {
  if (offsets_ == nullptr) {
    for (Index j = 0; j < std::min<Index>(n_features(), 64); ++j) factors_.prefetch(row * n_features() + j);
  }
  if (diagonal_) diagonal_->prefetch(row);
}

void LowRankCovariances::check(const std::string& argument, const Execution& execution) const {
  const Index at = factors_.empty() ? -1 : factors_.first_refused(-largest_value, execution);
  if (at >= 0) {
    Index row = 0;
    while (at >= first_column(row + 1) * n_features()) ++row;
    const Index column = (at - first_column(row) * n_features()) % rank(row);
    factors_.refuse(argument, at, row, column, "factors must be finite");
  }
  if (diagonal_) diagonal_->check(argument + " diagonal", execution);
}

}  // namespace halosvm
