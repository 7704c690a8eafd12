// Means, dense and sparse: rows as they are stored come in, scores and sums in float64 go out.

#include "halosvm/gaussians/means.hpp"

#include "halosvm/core/check.hpp"

#include <algorithm>
#include <utility>

namespace halosvm {

DenseMeans::DenseMeans(const ArrayView& array, Vector origin)
    : Means(array.rows(), array.cols()),
      origin_(std::move(origin)),
      stored_(array),
      array_(origin_.size() > 0 ? array.seen_from(origin_.data()) : array) {}

void DenseMeans::add_moments(const Rows& rows, const ConstVectorRef& c, VectorRef first, VectorRef second,
                             double* scratch) const {
  const ConstMatrixMap X = stored_.block(rows, scratch);
  const Vector nowhere = origin_.size() > 0 ? Vector() : Vector::Zero(cols()).eval();
  const double* __restrict origin = origin_.size() > 0 ? origin_.data() : nowhere.data();
  double* __restrict sum = first.data();
  double* __restrict squares = second.data();
  for (Index i = 0; i < rows.count; ++i) {
    const double* __restrict x = X.row(i).data();
    const double weight = c(i);
    for (Index j = 0; j < cols(); ++j) {
      const double shifted = x[j] - origin[j];
      sum[j] += weight * shifted;
      squares[j] += weight * shifted * shifted;
    }
  }
}

void DenseMeans::descend(const Rows& rows, VectorRef w, const RowStep& step, double* scratch) const {
  for (Index i = 0; i < rows.count; ++i) {
    if (i + 1 < rows.count) array_.prefetch(rows[i + 1]);
    const ConstVectorMap x(array_.block({rows[i], 1}, scratch).data(), cols());
    const double a = step(i, x.dot(w));
    if (a != 0.0) w += a * x;
  }
}

void DenseMeans::squares(const Rows& rows, VectorRef out, double* scratch) const {
  for (Index i = 0; i < rows.count; ++i) out(i) = array_.block({rows[i], 1}, scratch).squaredNorm();
}

std::shared_ptr<const Means> DenseMeans::seen_from(const Vector& origin) const {
  return std::make_shared<DenseMeans>(stored_, origin_.size() > 0 ? Vector(origin_ + origin) : origin);
}

void DenseMeans::check(const std::string& argument, const Execution& execution) const {
  stored_.check(argument, -largest_value, "it must be finite", execution);
}

Vector Means::origin_from(const Means& other) const {
  if (other.origin().size() == 0) return origin();
  return origin() - other.origin();
}

SparseMeans::SparseMeans(const SparseView& array) : SparseMeans(array, std::make_shared<Often>(), {}) {}

SparseMeans::SparseMeans(const SparseView& array, std::shared_ptr<Often> often, Vector origin)
    : Means(array.rows(), array.cols()), array_(array), often_(std::move(often)), origin_(std::move(origin)) {}

Index SparseMeans::rows_worth_a_vector() const {
  return rows() * cols() / std::max<Index>(1, array_.stored() + rows());
}

/// Calls use(i, values, columns, count) for the rows of the block.
template <class Use>
void SparseMeans::for_each_row(const Rows& rows, const Use& use) const {
  array_.as_stored([&](const auto* values, const auto* columns, const auto* offsets) {
    for (Index i = 0; i < rows.count; ++i) {
      const auto begin = static_cast<Index>(offsets[rows[i]]);
      use(i, values + begin, columns + begin, static_cast<Index>(offsets[rows[i] + 1]) - begin);
    }
  });
}

/// Calls use(j, -origin_j) for the columns j with an origin that a row does not store.
template <class I, class Use>
void SparseMeans::for_each_absent(const I* columns, Index count, const Use& use) const {
  const I* at = columns;
  for (const Index j : often_->columns) {
    while (at != columns + count && static_cast<Index>(*at) < j) ++at;
    if (at == columns + count || static_cast<Index>(*at) != j) use(j, -origin_(j));
  }
}

namespace {

/// x'w of the stored numbers, in four sums to hide the latency of additions.
template <class T, class I>
double dot(const T* x, const I* columns, Index count, const double* w) {
  double sum[4] = {};
  Index at = 0;
  for (; at + 4 <= count; at += 4) {
    for (Index k = 0; k < 4; ++k) sum[k] += static_cast<double>(x[at + k]) * w[columns[at + k]];
  }
  for (; at < count; ++at) sum[0] += static_cast<double>(x[at]) * w[columns[at]];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

}  // namespace

/// x'w, seen from the origin.
template <class T, class I>
double SparseMeans::score(const T* x, const I* columns, Index count, const double* w) const {
  if (origin_.size() == 0) return dot(x, columns, count, w);
  double sum = 0.0;
  for (Index at = 0; at < count; ++at) {
    const auto j = static_cast<Index>(columns[at]);
    sum += (static_cast<double>(x[at]) - origin_(j)) * w[j];
  }
  for_each_absent(columns, count, [&](Index j, double value) { sum += value * w[j]; });
  return sum;
}

/// total += a x, likewise.
template <class T, class I>
void SparseMeans::add(double a, const T* x, const I* columns, Index count, double* total) const {
  if (origin_.size() == 0) {
    for (Index at = 0; at < count; ++at) total[columns[at]] += a * static_cast<double>(x[at]);
    return;
  }
  for (Index at = 0; at < count; ++at) {
    const auto j = static_cast<Index>(columns[at]);
    total[j] += a * (static_cast<double>(x[at]) - origin_(j));
  }
  for_each_absent(columns, count, [&](Index j, double value) { total[j] += a * value; });
}

void SparseMeans::multiply(const Rows& rows, const ConstMatrixRef& weights, MatrixRef out, double* /*scratch*/) const {
  for_each_row(rows, [&](Index i, const auto* x, const auto* columns, Index count) {
    for (Index k = 0; k < weights.rows(); ++k) out(k, i) = score(x, columns, count, weights.row(k).data());
  });
}

void SparseMeans::add_weighted_rows(const Rows& rows, const ConstMatrixRef& coefficients, MatrixRef sum,
                                    double* /*scratch*/) const {
  for_each_row(rows, [&](Index i, const auto* x, const auto* columns, Index count) {
    for (Index k = 0; k < coefficients.rows(); ++k) {
      const double a = coefficients(k, i);
      if (a != 0.0) add(a, x, columns, count, sum.row(k).data());
    }
  });
}

void SparseMeans::descend(const Rows& rows, VectorRef w, const RowStep& step, double* /*scratch*/) const {
  constexpr Index ahead = 4;  // rows that come in any order, from memory
  for_each_row(rows, [&](Index i, const auto* x, const auto* columns, Index count) {
    if (i + ahead < rows.count) array_.prefetch(rows[i + ahead]);
    const double a = step(i, score(x, columns, count, w.data()));
    if (a != 0.0) add(a, x, columns, count, w.data());
  });
}

void SparseMeans::squares(const Rows& rows, VectorRef out, double* /*scratch*/) const {
  const bool moved = origin_.size() > 0;
  for_each_row(rows, [&](Index i, const auto* x, const auto* columns, Index count) {
    double sum = 0.0;
    for (Index at = 0; at < count; ++at) {
      const double value = static_cast<double>(x[at]) - (moved ? origin_(static_cast<Index>(columns[at])) : 0.0);
      sum += value * value;
    }
    if (moved) for_each_absent(columns, count, [&](Index /*j*/, double value) { sum += value * value; });
    out(i) = sum;
  });
}

void SparseMeans::add_moments(const Rows& rows, const ConstVectorRef& c, VectorRef first, VectorRef second,
                              double* /*scratch*/) const {
  const bool moved = origin_.size() > 0;
  for_each_row(rows, [&](Index i, const auto* x, const auto* columns, Index count) {
    const auto add = [&, weight = c(i)](Index j, double value) {
      first(j) += weight * value;
      second(j) += weight * value * value;
    };
    for (Index at = 0; at < count; ++at) {
      const auto j = static_cast<Index>(columns[at]);
      add(j, static_cast<double>(x[at]) - (moved ? origin_(j) : 0.0));
    }
    if (moved) for_each_absent(columns, count, add);
  });
}

ConstMatrixMap SparseMeans::block(const Rows& rows, double* scratch) const {
  MatrixMap dense(scratch, rows.count, cols());
  dense.setZero();
  for_each_row(rows, [&](Index i, const auto* x, const auto* columns, Index count) {
    for (Index at = 0; at < count; ++at) dense(i, static_cast<Index>(columns[at])) = static_cast<double>(x[at]);
  });
  if (origin_.size() > 0) dense.rowwise() -= origin_.transpose();
  return {scratch, rows.count, cols()};
}

bool SparseMeans::add_support(const Rows& rows, std::vector<Index>& columns) const {
  for_each_row(rows, [&](Index, const auto* /*x*/, const auto* stored, Index count) {
    for (Index at = 0; at < count; ++at) columns.push_back(static_cast<Index>(stored[at]));
  });
  if (origin_.size() > 0) columns.insert(columns.end(), often_->columns.begin(), often_->columns.end());
  return true;
}

std::shared_ptr<const Means> SparseMeans::seen_from(const Vector& origin) const {
  std::call_once(often_->found, [this] {
    std::vector<Index> counts(static_cast<std::size_t>(cols()), 0);
    for_each_row({0, this->rows()}, [&](Index, const auto* /*x*/, const auto* columns, Index count) {
      for (Index at = 0; at < count; ++at) ++counts[static_cast<std::size_t>(columns[at])];
    });
    for (Index j = 0; j < cols(); ++j) {
      if (2 * counts[static_cast<std::size_t>(j)] >= this->rows()) often_->columns.push_back(j);
    }
  });
  Vector heeded = origin_;
  if (heeded.size() == 0) heeded.setZero(cols());
  for (const Index j : often_->columns) heeded(j) += origin(j);
  return std::shared_ptr<const Means>(new SparseMeans(array_, often_, std::move(heeded)));
}

void SparseMeans::check(const std::string& argument, const Execution& execution) const {
  array_.check(argument, -largest_value, "it must be finite", execution);
}

}  // namespace halosvm
