#include "halosvm/kernel/kernel.hpp"
#include "oracle/covariance_batches.hpp"
#include "oracle/dense_algebra.hpp"
#include "oracle/errors.hpp"
#include "oracle/gaussian_bumps.hpp"
#include "oracle/random.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using halosvm::Execution;
using halosvm::ExpectedKernel;
using halosvm::Gaussians;
using halosvm::gram;
using halosvm::GramTarget;
using halosvm::Index;
using halosvm::KernelKind;
using halosvm::Matrix;
using halosvm::Mixtures;
using halosvm::Vector;
using oracle::error_of;
using oracle::largest_difference;
using oracle::view_of;

namespace {

GramTarget target_of(Matrix& out) { return {out.data(), nullptr, out.cols()}; }

template <class Examples>
Matrix gram_of(const ExpectedKernel& kernel, const Examples& X, const Examples& Y, const Execution& execution = {}) {
  Matrix out(X.n_samples(), Y.n_samples());
  if (&X == &Y) {
    gram(kernel, X, target_of(out), execution);
  } else {
    gram(kernel, X, Y, target_of(out), execution);
  }
  return out;
}

/// The formulas to the letter, on dense matrices.
double expected(const ExpectedKernel& kernel, const Vector& x, const Matrix& S, const Vector& y, const Matrix& T) {
  const Index d = x.size();
  const auto gamma = [&kernel](Index k) { return kernel.gamma(kernel.gamma.size() == 1 ? 0 : k); };
  if (kernel.kind == KernelKind::rbf) {
    Matrix total = S + T;
    double root = 1.0;  // of the determinant of the kernel's own matrix
    for (Index k = 0; k < d; ++k) {
      total(k, k) += 0.5 / gamma(k);
      root *= std::sqrt(0.5 / gamma(k));
    }
    return root * oracle::bump(total, x - y);
  }
  // With the diagonal matrix G of gamma: x'G y, x'G T G x + y'G S G y + tr(G S G T) and x'G T G S G y.
  double a = kernel.coef0;
  double q = 0.0;
  double both = 0.0;
  for (Index k = 0; k < d; ++k) {
    a += x(k) * gamma(k) * y(k);
    double S_y = 0.0;
    double T_x = 0.0;
    for (Index l = 0; l < d; ++l) {
      S_y += S(k, l) * gamma(l) * y(l);
      T_x += T(k, l) * gamma(l) * x(l);
      q += gamma(k) * S(k, l) * gamma(l) * T(l, k);
    }
    q += gamma(k) * (x(k) * T_x + y(k) * S_y);
    both += T_x * gamma(k) * S_y;
  }
  return kernel.degree == 2 ? a * a + q : a * a * a + 3.0 * a * q + 6.0 * both;
}

std::vector<ExpectedKernel> kernels(Index d) {
  Vector gamma(d);
  for (Index k = 0; k < d; ++k) gamma(k) = 0.1 + 0.2 * static_cast<double>(k);
  const Vector one = Vector::Constant(1, 0.3);
  return {{KernelKind::rbf, one},
          {KernelKind::rbf, gamma},
          {KernelKind::polynomial, one, 2, 0.5},
          {KernelKind::polynomial, gamma, 3, 0.5}};
}

}  // namespace

TEST_CASE("every pair of covariance kinds follows the formulas on dense matrices") {
  const Index d = 5;
  const auto others = oracle::whole_batches(21, d, 2);
  const Matrix means = oracle::Random(3).normal_matrix(19, d);
  const Matrix other_means = oracle::Random(4).normal_matrix(21, d);
  for (const auto& batch : oracle::whole_batches(19, d, 1)) {
    for (const auto& other : others) {
      const Gaussians X(view_of(means), batch.covariances);
      const Gaussians Y(view_of(other_means), other.covariances);
      CAPTURE(batch.name);
      CAPTURE(other.name);
      for (const ExpectedKernel& kernel : kernels(d)) {
        const Matrix K = gram_of(kernel, X, Y);
        for (Index i = 0; i < K.rows(); ++i) {
          const Vector mean = means.row(i).transpose();
          for (Index j = 0; j < K.cols(); ++j) {
            const double value = expected(kernel, mean, batch.dense[static_cast<std::size_t>(i)],
                                          other_means.row(j).transpose(), other.dense[static_cast<std::size_t>(j)]);
            REQUIRE(K(i, j) == doctest::Approx(value).epsilon(1e-11));
          }
        }
      }
    }
  }
}

TEST_CASE("a Gram matrix of one batch is symmetric to the last bit and the same on any number of threads") {
  const Index d = 7;
  const Index n = 130;  // three tiles of 64 rows, the last one short
  const Matrix means = oracle::Random(6).normal_matrix(n, d);
  for (const auto& batch : oracle::whole_batches(n, d, 5)) {
    const Gaussians X(view_of(means), batch.covariances);
    for (const ExpectedKernel& kernel : kernels(d)) {
      const Matrix K = gram_of(kernel, X, X, {1, {}});
      CHECK(K == K.transpose());
      CHECK(K == gram_of(kernel, X, X, {5, {}}));
      const Vector diagonal = halosvm::gram_diagonal(kernel, X, {});
      CHECK(largest_difference(K.diagonal(), diagonal) <= 1e-12 * diagonal.cwiseAbs().maxCoeff());
    }
  }
}

TEST_CASE("the determinant's exponent is -1/2: with the printed +1/2 the kernel is indefinite") {
  const Matrix means = Matrix::Zero(2, 1);
  const Matrix variances = (Matrix(2, 1) << 0.0, 3.0).finished();
  const Gaussians X(view_of(means), std::make_shared<halosvm::DiagonalCovariances>(view_of(variances)));
  const Matrix K = gram_of({KernelKind::rbf, Vector::Constant(1, 0.5)}, X, X);
  CHECK(K(0, 0) == 1.0);
  CHECK(K(0, 1) == doctest::Approx(0.5).epsilon(1e-14));
  CHECK(K(1, 1) == doctest::Approx(1.0 / std::sqrt(7.0)).epsilon(1e-14));
  const auto determinant = [](const Matrix& M) { return M(0, 0) * M(1, 1) - M(0, 1) * M(1, 0); };
  CHECK(determinant(K) > 0.0);
  CHECK(determinant(K.cwiseInverse()) < 0.0);  // equal means: the printed kernel is the reciprocal
}

TEST_CASE("factors near 1e250 in a determinant neither overflow nor lose the others") {
  const Index d = 9;
  const Matrix means = Matrix::Zero(1, d);
  const Matrix point = Matrix::Constant(1, d, 1e-3);
  const Gaussians Y(view_of(point), std::make_shared<halosvm::DiagonalCovariances>(view_of(point)));
  for (const double large : {1e40, 1e60, 1e140}) {
    Matrix variances = Matrix::Constant(1, d, 0.5);
    variances(0, 4) = large;
    const Gaussians X(view_of(means), std::make_shared<halosvm::DiagonalCovariances>(view_of(variances)));
    const double rest = std::pow(1.501, -0.5 * 8.0) * std::exp(-0.5 * 8.0 * 1e-6 / 1.501);
    CHECK(gram_of({KernelKind::rbf, Vector::Constant(1, 0.5)}, X, Y)(0, 0) ==
          doctest::Approx(rest / std::sqrt(large)).epsilon(1e-12));
  }
}

TEST_CASE("a target of float32 and of wider rows gets the same numbers") {
  oracle::BatchMaker<double> maker(40, 3, 7);
  const Matrix means = oracle::Random(8).normal_matrix(40, 3);
  const auto batch = maker.diagonal(false);
  const Gaussians X(view_of(means), batch.covariances);
  const ExpectedKernel kernel{KernelKind::rbf, Vector::Constant(1, 0.2)};
  const Matrix K = gram_of(kernel, X, X);
  std::vector<float> numbers(static_cast<std::size_t>(40 * 50), -1.0F);
  gram(kernel, X, {nullptr, numbers.data(), 50}, {});
  for (Index i = 0; i < 40; ++i) {
    for (Index j = 0; j < 50; ++j) {
      CHECK(numbers[static_cast<std::size_t>(i * 50 + j)] == (j < 40 ? static_cast<float>(K(i, j)) : -1.0F));
    }
  }
}

TEST_CASE("progress ends below one and the caller can stop") {
  const Matrix means = oracle::Random(9).normal_matrix(2000, 60);
  const Matrix variances = means.cwiseAbs();
  const Gaussians X(view_of(means), std::make_shared<halosvm::DiagonalCovariances>(view_of(variances)));
  Matrix out(2000, 2000);
  std::vector<double> seen;
  const ExpectedKernel kernel{KernelKind::laplacian, Vector::Constant(1, 0.2)};
  const Execution execution{1, [&] { return seen.empty() || seen.back() == 0.0; }};
  CHECK_THROWS_AS(gram(kernel, X, target_of(out), execution, [&](double fraction) { seen.push_back(fraction); }),
                  halosvm::Stopped);
  REQUIRE(!seen.empty());  // else it ended within the 50 ms between two reports
  CHECK(seen.back() > 0.0);
  CHECK(seen.back() < 1.0);
}

TEST_CASE("kernels of mixtures are weighted sums over their components, also of mixtures larger than a tile") {
  const Index d = 3;
  for (const Index large : {100, 198}) {
    const std::vector<Index> offsets{0, 1, 4, 30, 32, 32 + large, 34 + large};
    const Index n = static_cast<Index>(offsets.size()) - 1;
    const Matrix means = oracle::Random(11).normal_matrix(offsets.back(), d);
    Matrix membership = Matrix::Zero(n, offsets.back());
    Vector weights(offsets.back());
    for (Index i = 0; i < n; ++i) {
      const Index begin = offsets[static_cast<std::size_t>(i)];
      const Index count = offsets[static_cast<std::size_t>(i) + 1] - begin;
      const Vector each = Vector::LinSpaced(count, 1.0, 2.0);
      weights.segment(begin, count) = each / each.sum();
      membership.row(i).segment(begin, count) = weights.segment(begin, count).transpose();
    }
    const auto all = kernels(d);
    const auto batches = oracle::whole_batches(offsets.back(), d, 12);
    for (std::size_t k = 0; k < batches.size(); ++k) {
      const oracle::Batch& batch = batches[k];
      // Tiles have up to 192 rows where covariances are multiples of I, else 96.
      const std::string kind = batch.covariances->kind();
      if ((kind == "zero" || kind == "isotropic") != (large > 192)) continue;
      CAPTURE(batch.name);
      CAPTURE(k);
      const Gaussians components(view_of(means), batch.covariances);
      const Mixtures X(components, offsets.data(), n, weights.data());
      ExpectedKernel kernel = all[k % all.size()];  // sums know no covariances: each kind meets two of the kernels
      const Matrix expected = oracle::congruent(membership, gram_of(kernel, components, components));
      const double largest = expected.cwiseAbs().maxCoeff();
      const Matrix K = gram_of(kernel, X, X);
      CHECK(largest_difference(K, expected) <= 1e-12 * largest);
      CHECK(K == K.transpose());
      CHECK(K == gram_of(kernel, X, X, {5, {}}));
      const Matrix diagonal = K.diagonal();
      CHECK(largest_difference(diagonal, halosvm::gram_diagonal(kernel, X, {})) <=
            1e-12 * diagonal.cwiseAbs().maxCoeff());
      Matrix mixed(n, components.n_samples());
      gram(kernel, X, components, target_of(mixed), {});
      CHECK(largest_difference(oracle::product(mixed, membership.transpose()), expected) <= 1e-12 * largest);
      kernel.normalize = true;
      CHECK(largest_difference(gram_of(kernel, X, X).diagonal(), Vector::Ones(n)) <= 1e-12);
    }
  }
}

TEST_CASE("mixtures whose offsets or weights make no sense are refused by name") {
  oracle::BatchMaker<double> maker(3, 2, 7);
  const Matrix means = Matrix::Zero(3, 2);
  const auto batch = maker.full();
  const Gaussians components(view_of(means), batch.covariances);
  const auto error = [&](const std::vector<Index>& offsets, const std::vector<double>& weights) {
    const Index n = static_cast<Index>(offsets.size()) - 1;
    return error_of([&] { Mixtures(components, offsets.data(), n, weights.data()); });
  };
  CHECK(error({0, 2}, {0.5, 0.5, 1.0}) == "offsets has 2 rows, components has 3");
  CHECK(error({1, 3}, {0.5, 0.5, 1.0}) == "offsets must begin with 0");
  CHECK(error({0, 3, 3}, {0.5, 0.4, 0.1}) == "offsets of mixture 1 leave it no component");
  CHECK(error({0, 2, 3}, {1.5, -0.5, 1.0}) == "weights row 1 is -0.5; it must be >= 0");
  CHECK(error({0, 2, 3}, {0.5, 0.4, 1.0}) == "weights of mixture 0 have the sum 0.9; it must be 1");
}

TEST_CASE("parameters out of range are refused by name") {
  oracle::BatchMaker<double> maker(3, 2, 7);
  const Matrix means = Matrix::Zero(3, 2);
  const auto batch = maker.full();
  const Gaussians X(view_of(means), batch.covariances);
  Matrix out(3, 3);
  const auto error = [&](const ExpectedKernel& kernel) {
    return error_of([&] { gram(kernel, X, target_of(out), {}); });
  };
  CHECK(error({KernelKind::rbf, Vector::Zero(1)}) == "gamma is 0; it must be positive and finite");
  CHECK(error({KernelKind::rbf, Vector::Ones(3)}) == "gamma has 3 features, X has 2");
  CHECK(error({KernelKind::polynomial, Vector::Ones(1), 4}) == "degree is 4; closed forms are known for 1, 2 and 3");
  CHECK(error({KernelKind::laplacian, Vector::Ones(1)}) ==
        "kind laplacian needs zero, isotropic or diagonal covariances, not full");
}
