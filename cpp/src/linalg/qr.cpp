// QR decompositions: the one place that compiles Eigen's.

#include "linalg/qr.hpp"

#include <Eigen/Householder>
#include <Eigen/QR>

namespace halosvm::linalg {

Vector qr(ColumnsRef A) { return Eigen::HouseholderQR<ColumnsRef>(A).hCoeffs(); }

Vector pivoted_qr(ColumnsRef A) { return Eigen::ColPivHouseholderQR<ColumnsRef>(A).hCoeffs(); }

void apply_q(const ConstColumnsRef& reflections, const ConstVectorRef& coefficients, ColumnsRef X) {
  X.applyOnTheLeft(Eigen::householderSequence(reflections, coefficients));
}

void apply_q_transposed(const ConstColumnsRef& reflections, const ConstVectorRef& coefficients, ColumnsRef X) {
  X.applyOnTheLeft(Eigen::householderSequence(reflections, coefficients).transpose());
}

}  // namespace halosvm::linalg
