#include "orthonormal_columns.hpp"

#include <Eigen/Cholesky>
#include <Eigen/QR>

namespace halosvm {

bool orthonormalise_by_cholesky(Eigen::MatrixXd& columns, Eigen::MatrixXd& triangle) {
  const Index k = columns.cols();
  triangle.setZero(k, k);
  triangle.selfadjointView<Eigen::Lower>().rankUpdate(columns.transpose());
  Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> cholesky(triangle);
  const Vector lengths = triangle.diagonal();
  if (cholesky.info() != Eigen::Success || !(lengths.minCoeff() > 1e-5 * lengths.maxCoeff())) return false;
  triangle = triangle.triangularView<Eigen::Lower>().transpose().toDenseMatrix();
  triangle.triangularView<Eigen::Upper>().solveInPlace<Eigen::OnTheRight>(columns);
  return true;
}

void orthonormalise_by_reflections(Eigen::MatrixXd& columns, Eigen::MatrixXd& triangle) {
  const Index k = columns.cols();
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(columns);
  triangle = qr.matrixQR().topRows(k).triangularView<Eigen::Upper>();
  columns = qr.householderQ() * Eigen::MatrixXd::Identity(columns.rows(), k);
}

}  // namespace halosvm
