// Spreads as variables of their own: the kind that a problem needs, and what all kinds do with factors.

#include "solver/interior_point/cones.hpp"

#include "gaussians/norms.hpp"
#include "solver/interior_point/linear_cones.hpp"
#include "solver/interior_point/quadratic_cones.hpp"

namespace halosvm {

std::unique_ptr<Cones> Cones::make(const LocalObjective& problem) {
  if (problem.data().covariances().spread_norm() == 2.0) return std::make_unique<QuadraticCones>(problem);
  return std::make_unique<LinearCones>(problem);
}

Cones::Cones(const LocalObjective& problem) : objective_(problem), factors_(*problem.data().covariances().factors()) {
  for (Vector* flat : {&p_, &dp_, &v_, &u1_, &push_}) *flat = columns();
}

VectorMap Cones::block(Vector& flat, const Rows& rows) const {
  const Index last = rows[rows.count - 1];
  const Index begin = factors_.first_column(rows[0]);
  return {flat.data() + begin, factors_.first_column(last) + factors_.rank(last) - begin};
}

ConstVectorMap Cones::block(const Vector& flat, const Rows& rows) const {
  const Index last = rows[rows.count - 1];
  const Index begin = factors_.first_column(rows[0]);
  return {flat.data() + begin, factors_.first_column(last) + factors_.rank(last) - begin};
}

void Cones::look(const Rows& rows, const ConstMatrixRef& w, MatrixRef s, double* scratch) {
  factors_.project(rows, w.row(0).transpose(), block(p_, rows), scratch);
  const double q = objective_.data().covariances().spread_norm();
  for (Index i = 0; i < rows.count; ++i) s(0, i) = norm(of(p_, rows[i]), q);
}

void Cones::products(const Rows& rows, Matrix& out, double* scratch) const {
  factors_.combine(rows, block(u1_, rows), out.topRows(rows.count), scratch);
}

void Cones::project(const Rows& rows, const ConstMatrixRef& dw, MatrixRef cross, double* scratch) {
  factors_.project(rows, dw.row(0).transpose(), block(dp_, rows), scratch);
  for (Index i = 0; i < rows.count; ++i) cross(0, i) = of(u1_, rows[i]).dot(of(dp_, rows[i]));
}

}  // namespace halosvm
