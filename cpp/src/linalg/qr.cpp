// QR decompositions: the one place that compiles Eigen's.

#include "linalg/qr.hpp"

#include <Eigen/Householder>
#include <Eigen/QR>

namespace halosvm::linalg {

Vector qr(ColumnsRef A) { return Eigen::HouseholderQR<ColumnsRef>(A).hCoeffs(); }

Vector pivoted_qr(ColumnsRef A) { return Eigen::ColPivHouseholderQR<ColumnsRef>(A).hCoeffs(); }

// A single column is as common, and has faster code of its own.

void apply_q(const ConstColumnsRef& reflections, const ConstVectorRef& coefficients, ColumnsRef X) {
  const auto Q = Eigen::householderSequence(reflections, coefficients);
  if (X.cols() == 1) {
    X.col(0).applyOnTheLeft(Q);
  } else {
    X.applyOnTheLeft(Q);
  }
}

void apply_q_transposed(const ConstColumnsRef& reflections, const ConstVectorRef& coefficients, ColumnsRef X) {
  const auto Q = Eigen::householderSequence(reflections, coefficients);
  if (X.cols() == 1) {
    X.col(0).applyOnTheLeft(Q.transpose());
  } else {
    X.applyOnTheLeft(Q.transpose());
  }
}

}  // namespace halosvm::linalg
