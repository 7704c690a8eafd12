// Conjugate gradients on a face of the dual: a residual comes in, a direction goes out.

#include "solver/dual_coordinate/face.hpp"

#include <algorithm>
#include <utility>

namespace halosvm {

Face::Face(const LocalObjective& problem, const std::vector<Index>& rows, const Vector& signs, Vector bends,
           const Vector& diagonal, double pull)
    : problem_(problem),
      rows_(rows),
      signs_(signs),
      bends_(std::move(bends)),
      diagonal_(diagonal),
      pull_(pull),
      block_(problem.data().block_rows()),
      scratch_(std::max<Index>(1, problem.data().means().scratch_size(block_, 1))) {}

void Face::add(const Vector& p, VectorRef w) const {
  const auto size = static_cast<Index>(rows_.size());
  Matrix a(1, block_);
  rows_read_ += static_cast<double>(size);
  Eigen::Map<Matrix> sum(w.data(), 1, w.size());
  for (Index begin = 0; begin < size; begin += block_) {
    const Index count = std::min(block_, size - begin);
    a.leftCols(count) = p.segment(begin, count).cwiseProduct(signs_.segment(begin, count)).transpose();
    problem_.data().means().add_weighted_rows({0, count, rows_.data() + begin}, a.leftCols(count), sum,
                                              scratch_.data());
  }
}

void Face::scores(const Vector& w, Vector& out) const {
  const auto size = static_cast<Index>(rows_.size());
  rows_read_ += static_cast<double>(size);
  Eigen::Map<const Matrix> weights(w.data(), 1, w.size());
  for (Index begin = 0; begin < size; begin += block_) {
    const Index count = std::min(block_, size - begin);
    Eigen::Map<Matrix> here(out.data() + begin, 1, count);
    problem_.data().means().multiply({0, count, rows_.data() + begin}, weights, here, scratch_.data());
  }
  out.array() *= signs_.array();
}

Vector Face::solve(Vector r, Index steps, double enough, Vector& w, Checkpoint& checkpoint) const {
  Vector p = Vector::Zero(r.size());
  Vector z = r.cwiseQuotient(diagonal_);
  Vector direction = z;
  Vector product(r.size());
  double size = r.dot(z);
  const double target = enough * enough * size;
  for (Index i = 0; i < steps && size > target; ++i) {
    checkpoint();
    w.setZero();
    add(direction, w);
    scores(w, product);
    product += pull_ * direction.dot(signs_) * signs_ + bends_.cwiseProduct(direction);
    const double bend = direction.dot(product);
    if (!(bend > 0.0)) break;
    const double length = size / bend;
    p += length * direction;
    r -= length * product;
    z = r.cwiseQuotient(diagonal_);
    const double next = r.dot(z);
    direction = z + (next / size) * direction;
    size = next;
  }
  return p;
}

}  // namespace halosvm
