// Offsets of batches: the likelihood of two rows against that of both as one vector, and what is refused.

#include "halosvm/population/batches.hpp"

#include "halosvm/gaussians/covariances/diagonal.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>

using namespace halosvm;  // NOLINT(google-build-using-namespace)

namespace {

constexpr double log_two_pi = 1.8378770664093453;

struct Pair {
  Matrix x = (Matrix(2, 1) << 1.0, 3.0).finished();
  Matrix variances = (Matrix(2, 1) << 0.5, 2.0).finished();
  Gaussians X{ArrayView(x.data(), 2, 1), std::make_shared<DiagonalCovariances>(ArrayView(variances.data(), 2, 1))};
  Population population;
  PopulationSettings settings;
  Execution execution;

  Pair() {
    population.weights = Vector::Ones(1);
    population.means = Matrix::Constant(1, 1, 0.25);
    population.matrices = Matrix::Constant(1, 1, 1.5);
    population.offsets = Matrix::Constant(1, 1, 4.0);
    settings.max_iterations = 1;
    settings.prior = Vector::Zero(1);
    settings.scale = Vector::Ones(1);
  }
};

}  // namespace

TEST_CASE("two rows of a batch are one normal vector") {
  const Pair p;
  const BatchedMeasurements rows(p.X, nullptr, {0, 0}, {}, true, p.execution);
  REQUIRE(rows.n_batches() == 1);
  const PopulationFit fit = fit_population(rows, p.population, p.settings, p.execution);
  const double a = 6.0;  // 1.5 + 0.5 + 4
  const double b = 7.5;
  const double determinant = a * b - 16.0;
  const double u = 0.75;
  const double v = 2.75;
  const double square = (b * u * u - 8.0 * u * v + a * v * v) / determinant;
  CHECK(fit.history[0] == doctest::Approx(-0.5 * (square + std::log(determinant) + 2.0 * log_two_pi)));
  // precision 1/4 + 1/2 + 1/3.5
  const double precision = 0.25 + 0.5 + 1.0 / 3.5;
  CHECK(fit.offsets.covariances(0, 0) == doctest::Approx(1.0 / precision));
  CHECK(fit.offsets.means(0, 0) == doctest::Approx((0.5 * u + v / 3.5) / precision));
}

TEST_CASE("a row alone keeps the covariance of the offsets beside its error") {
  const Pair p;
  const BatchedMeasurements rows(p.X, nullptr, {0, 1}, {}, true, p.execution);
  const BatchOffsets offsets = batch_offsets(p.population, rows, nullptr, p.execution);
  Matrix means(2, 1);
  Matrix covariances(2, 1);
  remove_offsets(p.population, p.X, {0, 1}, {}, offsets, Vector::Ones(2), {means.data(), covariances.data()},
                 p.execution);
  CHECK(means(0, 0) == doctest::Approx(1.0));
  CHECK(means(1, 0) == doctest::Approx(3.0));
  CHECK(covariances(0, 0) == doctest::Approx(4.5));
  CHECK(covariances(1, 0) == doctest::Approx(6.0));
}

TEST_CASE("batches of another length, negative ones and populations without offsets are refused") {
  Pair p;
  CHECK_THROWS_WITH_AS(BatchedMeasurements(p.X, nullptr, {0}, {}, true, p.execution), doctest::Contains("batches"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(BatchedMeasurements(p.X, nullptr, {0, -1}, {}, true, p.execution), doctest::Contains("row 1"),
                       std::invalid_argument);
  const BatchedMeasurements rows(p.X, nullptr, {0, 0}, {}, true, p.execution);
  p.population.offsets.resize(0, 0);
  CHECK_THROWS_WITH_AS(fit_population(rows, p.population, p.settings, p.execution), doctest::Contains("offsets"),
                       std::invalid_argument);
}
