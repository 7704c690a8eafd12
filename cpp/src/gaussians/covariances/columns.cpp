// Covariances in a few features: weights of these go to the inner covariances, and what they give goes back to its
// place.

#include "halosvm/gaussians/covariances/columns.hpp"

#include "halosvm/core/check.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace halosvm {

ColumnsCovariances::ColumnsCovariances(std::shared_ptr<const Covariances> inner, std::vector<Index> columns,
                                       Index n_features)
    : Covariances(check::given(inner, "covariances")->n_samples(), n_features),
      inner_(std::move(inner)),
      columns_(std::move(columns)) {
  check::same_size("columns", size(), "covariances", inner_->n_features(), "features");
  std::vector<Index> sorted = columns_;
  std::sort(sorted.begin(), sorted.end());
  check::require(sorted.empty() || (sorted.front() >= 0 && sorted.back() < n_features), "columns",
                 "must be from 0 to " + std::to_string(n_features - 1));
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  check::require(twice == sorted.end(), "columns",
                 "has one twice: " + (twice == sorted.end() ? std::string() : std::to_string(*twice)));
}

Index ColumnsCovariances::scratch_size(const BlockShape& shape) const {
  return size() * std::max({3 * shape.problems, 1 + shape.rows, size()}) + inner_->scratch_size(shape);
}

// Eigen's own indexing by a list copies the list.
void ColumnsCovariances::gather(const ConstMatrixRef& W, MatrixRef out) const {
  for (Index c = 0; c < size(); ++c) out.col(c) = W.col(columns_[static_cast<std::size_t>(c)]);
}

void ColumnsCovariances::gather(const ConstVectorRef& w, VectorRef out) const {
  for (Index c = 0; c < size(); ++c) out(c) = w(columns_[static_cast<std::size_t>(c)]);
}

void ColumnsCovariances::add_back(const ConstMatrixRef& part, MatrixRef sum) const {
  for (Index c = 0; c < size(); ++c) sum.col(columns_[static_cast<std::size_t>(c)]) += part.col(c);
}

void ColumnsCovariances::bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                                  double* scratch) const {
  MatrixMap w(scratch, W.rows(), size());
  gather(W, w);
  scratch += w.size();
  if (W.data() == V.data()) {
    inner_->bilinear(rows, w, w, out, scratch);
    return;
  }
  MatrixMap v(scratch, V.rows(), size());
  gather(V, v);
  inner_->bilinear(rows, w, v, out, scratch + v.size());
}

void ColumnsCovariances::add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W,
                                               MatrixRef sum, double* scratch) const {
  MatrixMap w(scratch, W.rows(), size());
  gather(W, w);
  MatrixMap total(scratch + w.size(), W.rows(), size());
  total.setZero();
  inner_->add_weighted_products(rows, a, w, total, scratch + 2 * w.size());
  add_back(total, sum);
}

void ColumnsCovariances::squares(const Rows& rows, const ConstMatrixRef& W, MatrixRef out, double* kept,
                                 double* scratch) const {
  MatrixMap w(scratch, W.rows(), size());
  gather(W, w);
  inner_->squares(rows, w, out, kept, scratch + w.size());
}

void ColumnsCovariances::add_kept_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W,
                                           const double* kept, MatrixRef sum, double* scratch) const {
  MatrixMap w(scratch, W.rows(), size());
  gather(W, w);
  MatrixMap total(scratch + w.size(), W.rows(), size());
  total.setZero();
  inner_->add_kept_products(rows, a, w, kept, total, scratch + 2 * w.size());
  add_back(total, sum);
}

void ColumnsCovariances::products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const {
  VectorMap own(scratch, size());
  gather(w, own);
  MatrixMap inside(scratch + size(), rows.count, size());
  inner_->products(rows, own, inside, scratch + size() + inside.size());
  out.setZero();
  for (Index c = 0; c < size(); ++c) out.col(columns_[static_cast<std::size_t>(c)]) = inside.col(c);
}

void ColumnsCovariances::scatter(const MatrixMap& matrix, MatrixRef sum) const {
  if (cancels()) {  // both triangles are read
    for (Index i = 0; i < size(); ++i) {
      for (Index j = 0; j < size(); ++j) {
        sum(columns_[static_cast<std::size_t>(i)], columns_[static_cast<std::size_t>(j)]) += matrix(i, j);
      }
    }
    return;
  }
  for (Index i = 0; i < size(); ++i) {
    for (Index j = 0; j <= i; ++j) {
      const auto [low, high] =
          std::minmax(columns_[static_cast<std::size_t>(i)], columns_[static_cast<std::size_t>(j)]);
      sum(high, low) += matrix(i, j);
    }
  }
}

void ColumnsCovariances::add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum,
                                               double* scratch) const {
  MatrixMap inside(scratch, size(), size());
  inside.setZero();
  inner_->add_weighted_matrices(rows, a, inside, scratch + inside.size());
  scatter(inside, sum);
}

void ColumnsCovariances::root(Index row, Matrix& out) const {
  Matrix inside;
  inner_->root(row, inside);
  out.setZero(n_features(), inside.cols());
  for (Index c = 0; c < size(); ++c) out.row(columns_[static_cast<std::size_t>(c)]) = inside.row(c);
}

void ColumnsCovariances::add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum,
                                                double* scratch) const {
  VectorMap inside(scratch, size());
  inside.setZero();
  inner_->add_weighted_diagonals(rows, a, inside, scratch + size());
  for (Index c = 0; c < size(); ++c) sum(columns_[static_cast<std::size_t>(c)]) += inside(c);
}

void ColumnsCovariances::project(const Rows& rows, const ConstVectorRef& w, VectorRef p, double* scratch) const {
  VectorMap own(scratch, size());
  gather(w, own);
  inner_->factors()->project(rows, own, p, scratch + size());
}

void ColumnsCovariances::combine(const Rows& rows, const ConstVectorRef& v, MatrixRef out, double* scratch) const {
  MatrixMap inside(scratch, rows.count, size());
  inner_->factors()->combine(rows, v, inside, scratch + inside.size());
  out.setZero();
  for (Index c = 0; c < size(); ++c) out.col(columns_[static_cast<std::size_t>(c)]) = inside.col(c);
}

void ColumnsCovariances::add_combined(const Rows& rows, const ConstVectorRef& a, const ConstVectorRef& v, VectorRef sum,
                                      double* scratch) const {
  VectorMap inside(scratch, size());
  inside.setZero();
  inner_->factors()->add_combined(rows, a, v, inside, scratch + size());
  for (Index c = 0; c < size(); ++c) sum(columns_[static_cast<std::size_t>(c)]) += inside(c);
}

void ColumnsCovariances::add_squares(const Rows& rows, const ConstVectorRef& t, MatrixRef sum, double* scratch) const {
  MatrixMap inside(scratch, size(), size());
  inside.setZero();
  inner_->factors()->add_squares(rows, t, inside, scratch + inside.size());
  scatter(inside, sum);
}

}  // namespace halosvm
