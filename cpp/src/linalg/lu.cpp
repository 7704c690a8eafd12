// LU decompositions: the one place that compiles Eigen's.

#include "linalg/lu.hpp"

#include <Eigen/LU>

namespace halosvm::linalg {

void Lu::compute(const ConstColumnsRef& A) {
  factors_ = A;
  ColumnsRef in_place(factors_);
  permutation_ = Eigen::PartialPivLU<ColumnsRef>(in_place).permutationP();
}

Vector Lu::solve(const Vector& x) const {
  Vector out = permutation_ * x;
  factors_.triangularView<Eigen::UnitLower>().solveInPlace(out);
  factors_.triangularView<Eigen::Upper>().solveInPlace(out);
  return out;
}

}  // namespace halosvm::linalg
