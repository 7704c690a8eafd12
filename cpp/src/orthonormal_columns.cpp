#include "orthonormal_columns.hpp"

#include <Eigen/Cholesky>
#include <Eigen/QR>

#include <random>

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

void fill_at_random(VectorRef out) {
  std::mt19937_64 engine(20180401);  // NOLINT(bugprone-random-generator-seed,cert-msc32-c,cert-msc51-cpp): repeatable
  for (Index i = 0; i < out.size(); ++i) out(i) = static_cast<double>(engine() >> 11U) * 0x1p-52 - 1.0;
}

}  // namespace halosvm
