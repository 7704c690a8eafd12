// Features of kernels: vector trigonometry, moments of every kind of covariance, memory that does not grow with rows.
#include "../../../cpp/src/kernel/lanes.hpp"
#include "../../../cpp/src/maps/features/trigonometry.hpp"
#include "halosvm/maps/fourier.hpp"
#include "halosvm/maps/nystroem.hpp"
#include "oracle/allocations.hpp"
#include "oracle/covariance_batches.hpp"
#include "oracle/dense_algebra.hpp"
#include "oracle/errors.hpp"
#include "oracle/gaussian_bumps.hpp"
#include "oracle/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace halosvm;  // NOLINT(google-build-using-namespace)

namespace {

ArrayView view_of(const Matrix& m) { return {m.data(), m.rows(), m.cols()}; }

FourierMap fourier_map(Index n_frequencies, Index d, Index n_phases) {
  oracle::Random random(11);
  FourierMap map{0.7 * random.normal_matrix(n_frequencies, d), {}};
  map.phases = random.normal_vector(n_phases);
  return map;
}

/// All that a map writes, the covariances as matrices.
struct FeatureMoments {
  FeatureMoments(Index n, Index D, Index rank)
      : means(n, D), variances(n, D), factors(n * D, rank), rest(n, D), matrices(n * D, D) {}

  Matrix means, variances, factors, rest, matrices;
};

FeatureMoments moments_of(const FourierMap& map, const Gaussians& X, const Execution& execution = {}) {
  FeatureMoments out(X.n_samples(), map.n_components(), latent_rank(X));
  FeatureTarget target;
  target.means = out.means.data();
  target.variances = out.variances.data();
  target.matrices = out.matrices.data();
  fourier_features(map, X, target, execution);
  target = {};
  target.factors = out.factors.data();
  target.variances = out.rest.data();
  fourier_features(map, X, target, execution);
  return out;
}

/// E cos(a'x + s) for x ~ N(mean, S).
double expected_cosine(const Vector& a, double s, const Vector& mean, const Matrix& S) {
  return std::cos(a.dot(mean) + s) * std::exp(-0.5 * oracle::bilinear(a, S, a));
}

constexpr double half_pi = 1.5707963267948966;

}  // namespace

TEST_CASE("sine and cosine are within 2^-52 of the library's in extended precision up to the largest angle") {
  oracle::Random random(1);
  double worst = 0.0;
  for (int k = 0; k < 100000; ++k) {
    const double exponent = random.uniform(-40.0, 20.0);
    // Every fourth is next to a multiple of pi / 2, where one of the two is small.
    double x = random.uniform(-1.0, 1.0) * std::exp2(exponent);
    if (k % 4 == 0) x = std::nextafter(half_pi * std::round(x), random.uniform() < 0.5 ? -1e9 : 1e9);
    if (std::abs(x) > maps::largest_angle) continue;
    const auto [sine, cosine] = maps::sine_cosine(x);
    worst = std::max(worst, static_cast<double>(std::abs(sine - std::sin(static_cast<long double>(x)))));
    worst = std::max(worst, static_cast<double>(std::abs(cosine - std::cos(static_cast<long double>(x)))));
  }
  CHECK(worst < 0x1p-52);
  CHECK(maps::sine_cosine(0.0).sine == 0.0);
  CHECK(maps::sine_cosine(0.0).cosine == 1.0);
}

TEST_CASE("exp(-a) - 1 is within 2 units in the last place however small a is") {
  oracle::Random random(2);
  double worst = 0.0;
  for (int k = 0; k < 50000; ++k) {
    const double a = std::exp2(random.uniform(-60.0, 9.4));
    const auto exact = static_cast<double>(std::expm1(-static_cast<long double>(a)));
    worst = std::max(worst, std::abs(kernels::exp_of_minus_less_one(a) / exact - 1.0));
  }
  CHECK(worst < 0x1p-51);
  CHECK(kernels::exp_of_minus_less_one(0.0) == 0.0);
  CHECK(kernels::exp_of_minus_less_one(-1e-20) == 0.0);
  CHECK(kernels::exp_of_minus_less_one(1e300) == -1.0);
}

TEST_CASE("moments of Fourier features follow from expected cosines for every kind of covariance") {
  const Index d = 3;
  const Index n = 6;
  const Matrix means = oracle::Random(3).normal_matrix(n, d);
  for (const Index n_phases : {0, 1, 4}) {
    CAPTURE(n_phases);
    const FourierMap map = fourier_map(4, d, n_phases);
    const Index n_pairs = map.n_pairs();
    const Index D = map.n_components();
    // Every feature is a cosine: sin t = cos(t - pi/2).
    const auto frequency = [&](Index f) { return Vector(map.frequencies.row(f % 4).transpose()); };
    const auto shift = [&](Index f) { return f >= 4 ? -half_pi : f < n_pairs ? 0.0 : map.phases(f - n_pairs); };
    for (const auto& batch : oracle::whole_batches(n, d, 5)) {
      CAPTURE(batch.name);
      const Gaussians X(view_of(means), batch.covariances);
      const FeatureMoments found = moments_of(map, X);
      const FeatureMoments threads = moments_of(map, X, {3, {}});
      CHECK(found.means == threads.means);
      CHECK(found.matrices == threads.matrices);
      CHECK(found.factors == threads.factors);
      const double unit = 2.0 / static_cast<double>(D);
      // A singular matrix that is rounded to float32 has eigenvalues below 0, which count as 0.
      const double rounding = batch.name == "full, float32" ? 1e-6 : 1e-14;
      for (Index i = 0; i < n; ++i) {
        const Vector mean = means.row(i).transpose();
        const Matrix& S = batch.dense[static_cast<std::size_t>(i)];
        const auto first = [&](Index f) { return expected_cosine(frequency(f), shift(f), mean, S); };
        for (Index f = 0; f < D; ++f) {
          CHECK(std::abs(found.means(i, f) - std::sqrt(unit) * first(f)) < rounding);
          for (Index e = 0; e < D; ++e) {
            // cos s cos t = 1/2 (cos(s - t) + cos(s + t))
            const double product = 0.5 * (expected_cosine(frequency(f) - frequency(e), shift(f) - shift(e), mean, S) +
                                          expected_cosine(frequency(f) + frequency(e), shift(f) + shift(e), mean, S));
            const double covariance = unit * (product - first(f) * first(e));
            CHECK(std::abs(found.matrices(i * D + f, e) - covariance) < rounding);
            if (e == f) {
              CHECK(std::abs(found.variances(i, f) - covariance) < rounding);
              const double linear = found.factors.row(i * D + f).squaredNorm();
              CHECK(std::abs(linear + found.rest(i, f) - covariance) < rounding);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("Fourier features allocate a few times for a block of rows, never for a row") {
  const Index d = 4;
  const FourierMap map = fourier_map(8, d, 0);
  const auto count = [&](Index n) {
    const Matrix means = oracle::Random(3).normal_matrix(n, d);
    const Matrix variances = means.cwiseAbs();
    const Matrix factors = oracle::Random(4).normal_matrix(n * d, 2);
    Matrix out(n, map.n_components());
    Matrix other(n, map.n_components());
    Matrix latent(n * map.n_components(), d + 2);
    Matrix matrices(n * map.n_components(), map.n_components());
    const Gaussians X(view_of(means), std::make_shared<LowRankCovariances>(view_of(factors), n, d, view_of(variances)));
    FeatureTarget target;
    target.means = out.data();
    target.variances = other.data();
    target.factors = latent.data();
    target.matrices = matrices.data();
    return oracle::allocations_in([&] { fourier_features(map, X, target, {1, {}}); });
  };
  const Index rows = 8192;
  CHECK(count(2 * rows) - count(rows) <= static_cast<std::size_t>(rows / 128 * 4));
}

TEST_CASE("moments of Nystroem features follow from products of Gaussian densities for every kind of covariance") {
  const Index d = 3;
  const Index n = 4;
  const Index m = 18;  // more than a tile of factors
  const Matrix means = oracle::Random(3).normal_matrix(n, d);
  const Matrix centres = oracle::Random(4).normal_matrix(m, d);
  const Matrix projection = oracle::Random(5).normal_matrix(5, m);
  for (const auto& batch : oracle::whole_batches(n, d, 7)) {
    for (const auto& other : oracle::whole_batches(m, d, 8)) {
      CAPTURE(batch.name);
      CAPTURE(other.name);
      const Gaussians X(view_of(means), batch.covariances);
      const NystroemMap map{Vector::Constant(1, 0.5), Gaussians(view_of(centres), other.covariances), projection};
      Matrix expected(n, 5);
      Matrix matrices(n * 5, 5);
      FeatureTarget target;
      target.means = expected.data();
      target.matrices = matrices.data();
      nystroem_features(map, X, target, {1, {}});
      if (batch.name == other.name) {  // threads share rows, whatever the pair
        Matrix threads(n * 5, 5);
        target.matrices = threads.data();
        nystroem_features(map, X, target, {3, {}});
        CHECK(threads == matrices);
      }
      const double rounding = batch.name == "full, float32" ? 1e-4 : 1e-9;
      for (Index i = 0; i < n; ++i) {
        const oracle::BumpMoments bumps(means.row(i).transpose(), batch.dense[static_cast<std::size_t>(i)], centres,
                                        other.dense);
        const Matrix covariance = oracle::congruent(projection, bumps.covariance);
        CHECK((expected.row(i).transpose() - oracle::times(projection, bumps.first)).norm() < rounding);
        CHECK((matrices.middleRows(i * 5, 5) - covariance).norm() < rounding);
      }
    }
  }
}

TEST_CASE("long calls can be stopped") {
  const Matrix means = oracle::Random(9).normal_matrix(100000, 30);
  const Matrix variances = means.cwiseAbs();
  const Gaussians X(view_of(means), std::make_shared<DiagonalCovariances>(view_of(variances)));
  const Execution stopping{2, [] { return false; }};
  Matrix out(means.rows(), 1000);
  FeatureTarget target;
  target.means = out.data();
  CHECK_THROWS_AS(fourier_features(fourier_map(500, 30, 0), X, target, stopping), Stopped);
  Vector bounds(means.rows());
  CHECK_THROWS_AS(fourier_bound(fourier_map(500, 30, 0), X, {}, false, bounds, stopping), Stopped);
  const Gaussians Z(ArrayView(means.data(), 500, 30), std::make_shared<ZeroCovariances>(500, 30));
  const NystroemMap map{Vector::Ones(1), Z, Matrix::Ones(2, 500)};
  target.variances = out.data();
  CHECK_THROWS_AS(nystroem_features(map, X, target, stopping), Stopped);
}

TEST_CASE("what does not fit is refused by name") {
  const Matrix means = Matrix::Zero(2, 3);
  const Gaussians X(view_of(means), std::make_shared<ZeroCovariances>(2, 3));
  const auto error = [&](const FourierMap& map) { return oracle::error_of([&] { fourier_features(map, X, {}, {}); }); };
  CHECK(error(fourier_map(4, 2, 0)) == "frequencies has 2 columns, X has 3");
  CHECK(error({Matrix(0, 3), {}}) == "frequencies has 0 rows; one is needed");
  CHECK(error({Matrix::Ones(2, 3), Vector::Ones(3)}) == "phases has 3 rows, frequencies has 2");
}
