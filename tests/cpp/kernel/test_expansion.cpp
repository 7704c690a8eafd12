#include "halosvm/kernel/kernel.hpp"
#include "oracle/covariance_batches.hpp"
#include "oracle/dense_algebra.hpp"
#include "oracle/errors.hpp"
#include "oracle/gaussian_bumps.hpp"
#include "oracle/random.hpp"

#include <doctest/doctest.h>

#include <memory>

using halosvm::Execution;
using halosvm::expansion_variance;
using halosvm::ExpectedKernel;
using halosvm::Gaussians;
using halosvm::Index;
using halosvm::KernelKind;
using halosvm::Matrix;
using halosvm::Vector;
using oracle::view_of;

namespace {

ExpectedKernel rbf(double gamma) { return {KernelKind::rbf, Vector::Constant(1, gamma)}; }

Matrix variance_of(const ExpectedKernel& kernel, const Gaussians& X, const Gaussians& Z, const Matrix& coefficients,
                   const Execution& execution = {}) {
  Matrix out(X.n_samples(), coefficients.rows());
  expansion_variance(kernel, X, Z, coefficients, out, execution);
  return out;
}

}  // namespace

TEST_CASE("variances follow the formula on dense matrices for every pair of covariance kinds") {
  const Index d = 3;
  const Index n = 20;  // more than a tile of factors
  const Matrix means = oracle::Random(3).normal_matrix(2, d);
  const Matrix centres = oracle::Random(4).normal_matrix(n, d);
  const Matrix coefficients = oracle::Random(5).normal_matrix(2, n);
  const auto others = oracle::whole_batches(n, d, 2);
  for (const auto& batch : oracle::whole_batches(2, d, 1)) {
    for (const auto& other : others) {
      const Gaussians X(view_of(means), batch.covariances);
      const Gaussians Z(view_of(centres), other.covariances);
      const Matrix value = variance_of(rbf(0.5), X, Z, coefficients, {1, {}});
      // A singular matrix that is rounded to float32 has eigenvalues below 0, which count as 0 in X.
      const double rounding = batch.name == "full, float32" ? 1e-5 : 1e-9;
      CAPTURE(batch.name);
      CAPTURE(other.name);
      // Threads share rows, whatever the pair: each kind has one turn on either side.
      if (batch.name == other.name) CHECK(value == variance_of(rbf(0.5), X, Z, coefficients, {3, {}}));
      for (Index i = 0; i < 2; ++i) {
        // For gamma = 1/2 the kernel with a centre is its bump.
        const oracle::BumpMoments bumps(means.row(i).transpose(), batch.dense[static_cast<std::size_t>(i)], centres,
                                        other.dense);
        for (Index p = 0; p < 2; ++p) {
          const Vector c = coefficients.row(p).transpose();
          const double expected = oracle::bilinear(c, bumps.covariance, c);
          CHECK(value(i, p) == doctest::Approx(expected).epsilon(rounding));
        }
      }
    }
  }
}

TEST_CASE("tiny covariances keep their digits: the variance grows in proportion") {
  const Index d = 4;
  const Matrix means = oracle::Random(6).normal_matrix(1, d);
  const Matrix centres = oracle::Random(7).normal_matrix(30, d);
  const Matrix coefficients = oracle::Random(8).normal_matrix(1, 30);
  for (const auto& batch : oracle::whole_batches(30, d, 9)) {
    const Gaussians Z(view_of(centres), batch.covariances);
    const auto value = [&](double variance) {
      const Matrix variances = Matrix::Constant(1, d, variance);
      const Gaussians X(view_of(means), std::make_shared<halosvm::DiagonalCovariances>(view_of(variances)));
      return variance_of(rbf(0.3), X, Z, coefficients)(0, 0);
    };
    CAPTURE(batch.name);
    CHECK(value(0.0) == 0.0);
    CHECK(value(1e-14) / 1e-14 == doctest::Approx(value(1e-40) / 1e-40).epsilon(1e-11));
    CHECK(value(1e-40) > 0.0);
  }
}

TEST_CASE("a call can be stopped, and other kernels and sizes are refused by name") {
  const Matrix means = oracle::Random(9).normal_matrix(2000, 30);
  const Matrix variances = means.cwiseAbs();
  const Gaussians X(view_of(means), std::make_shared<halosvm::DiagonalCovariances>(view_of(variances)));
  const Matrix coefficients = Matrix::Ones(1, 2000);
  CHECK_THROWS_AS(variance_of(rbf(1.0), X, X, coefficients, {2, [] { return false; }}), halosvm::Stopped);
  const auto error = [&](const ExpectedKernel& kernel, const Matrix& c) {
    return oracle::error_of([&] { variance_of(kernel, X, X, c); });
  };
  CHECK(error({KernelKind::laplacian, Vector::Ones(1)}, coefficients) == "kind must be rbf");
  CHECK(error(rbf(1.0), Matrix::Ones(1, 3)) == "coefficients has 3 rows, Z has 2000");
}
