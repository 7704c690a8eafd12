// Populations behind measurements: closed forms in one dimension, engines that agree, a likelihood that grows.
#include "halosvm/population/empirical_bayes.hpp"

#include "halosvm/gaussians/covariances/diagonal.hpp"
#include "halosvm/gaussians/covariances/full.hpp"
#include "halosvm/gaussians/covariances/zero.hpp"
#include "oracle/errors.hpp"
#include "oracle/random.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace halosvm;  // NOLINT(google-build-using-namespace)
using oracle::Random;

namespace {

const double missing = std::numeric_limits<double>::quiet_NaN();

/// Values with diagonal errors, and the same errors as matrices.
struct Measured {
  Measured(Index n, Index d, std::uint64_t seed, bool gaps) : values(n, d), variances(n, d), matrices(n * d, d) {
    Random random(seed);
    matrices.setZero();
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < d; ++j) {
        values(i, j) = gaps && random.uniform() < 0.3 ? missing : 2.0 * random.normal();
        variances(i, j) = random.uniform(0.1, 2.0);
        matrices(i * d + j, j) = variances(i, j);
      }
    }
  }

  ArrayView table() const { return {values.data(), values.rows(), values.cols()}; }
  Gaussians diagonal() const {
    const ArrayView errors(variances.data(), variances.rows(), variances.cols());
    return {table(), std::make_shared<DiagonalCovariances>(errors)};
  }
  Gaussians full() const {
    const ArrayView errors(matrices.data(), matrices.rows(), matrices.cols());
    return {table(), std::make_shared<FullCovariances>(errors, values.rows())};
  }

  Matrix values, variances, matrices;
};

Population two_components(PopulationKind kind, Index d) {
  Random random(7);
  Population out;
  out.kind = kind;
  out.weights = Vector::Constant(2, 0.5);
  out.means = random.normal_matrix(2, d);
  if (kind == PopulationKind::full) {
    out.matrices = Matrix::Zero(2 * d, d);
    for (Index k = 0; k < 2; ++k)
      out.matrices.middleRows(k * d, d).diagonal().setConstant(1.0 + static_cast<double>(k));
    return out;
  }
  out.variances = Matrix::Constant(2, d, 0.8);
  if (kind == PopulationKind::factors) out.factors = random.normal_matrix(2 * d, 2);
  return out;
}

PopulationSettings settings(Index d) {
  PopulationSettings out;
  out.prior = Vector::Constant(d, 1e-3);
  out.scale = Vector::Ones(d);
  return out;
}

}  // namespace

TEST_CASE("one value has the posterior of two Gaussians multiplied") {
  Population population;
  population.kind = PopulationKind::full;
  population.weights = Vector::Ones(1);
  population.means = Matrix::Constant(1, 1, 2.0);
  population.matrices = Matrix::Constant(1, 1, 3.0);
  for (const double variance : {0.0, 1e-24, 0.5, 1e24}) {
    CAPTURE(variance);
    const double x = 5.0;
    const ArrayView errors(&variance, 1, 1);
    const Gaussians X(ArrayView(&x, 1, 1), std::make_shared<DiagonalCovariances>(errors));
    const Posteriors posteriors(population, X, true, {});
    double mean = 0.0;
    double covariance = 0.0;
    PosteriorTarget target;
    target.means = &mean;
    target.matrices = &covariance;
    REQUIRE(posteriors.kind() == Posteriors::Kind::full);
    posteriors.write(target);
    CHECK(mean == doctest::Approx((2.0 * variance + 5.0 * 3.0) / (variance + 3.0)).epsilon(1e-14));
    CHECK(covariance == doctest::Approx(3.0 * variance / (3.0 + variance)).epsilon(1e-13));
    Vector density(1);
    log_density(population, X, density, {});
    const double T = variance + 3.0;
    CHECK(density(0) == doctest::Approx(-0.5 * (9.0 / T + std::log(2.0 * 3.14159265358979323846 * T))).epsilon(1e-13));
  }
}

TEST_CASE("what is not measured has the population as posterior and no density") {
  const Index d = 3;
  Matrix values = Matrix::Constant(2, d, missing);
  values(1, 0) = 1.0;
  const Gaussians X(ArrayView(values.data(), 2, d), std::make_shared<ZeroCovariances>(2, d));
  const Population population = two_components(PopulationKind::full, d);
  const Posteriors posteriors(population, X, false, {});
  Matrix means(4, d);
  Matrix matrices(4 * d, d);
  Matrix responsibilities(2, 2);
  PosteriorTarget target;
  target.means = means.data();
  target.matrices = matrices.data();
  target.responsibilities = responsibilities.data();
  posteriors.write(target);
  CHECK(means.topRows(2) == population.means);
  CHECK(matrices.topRows(2 * d) == population.matrices);
  CHECK(responsibilities.row(0).isApproxToConstant(0.5));
  CHECK(means(2, 0) == 1.0);
  Vector density(2);
  log_density(population, X, density, {});
  CHECK(std::abs(density(0)) < 1e-15);
}

TEST_CASE("diagonal errors give the same fit as the same errors as matrices") {
  const Index d = 4;
  for (const bool gaps : {false, true}) {
    const Measured data(90, d, 3, gaps);
    for (const PopulationKind kind : {PopulationKind::full, PopulationKind::diagonal, PopulationKind::factors}) {
      CAPTURE(gaps);
      CAPTURE(static_cast<int>(kind));
      PopulationSettings options = settings(d);
      options.accelerate = false;
      options.max_iterations = 6;
      options.tolerance = 0.0;
      const Population start = two_components(kind, d);
      const Gaussians diagonal = data.diagonal();
      const Gaussians full = data.full();
      const PopulationFit one = fit_population(Measurements(diagonal, nullptr, {}), start, options, {});
      const PopulationFit two = fit_population(Measurements(full, nullptr, {}), start, options, {});
      REQUIRE(one.history.size() == 6);
      for (std::size_t i = 0; i < one.history.size(); ++i) {
        CHECK(one.history[i] == doctest::Approx(two.history[i]).epsilon(1e-11));
      }
      CHECK((one.population.means - two.population.means).cwiseAbs().maxCoeff() < 1e-9);
      CHECK((one.population.covariance(1) - two.population.covariance(1)).cwiseAbs().maxCoeff() < 1e-9);
    }
  }
}

TEST_CASE("the objective grows from point to point, and the result is that of the last") {
  const Index d = 3;
  const Measured data(120, d, 11, true);
  const Gaussians X = data.full();
  for (const PopulationKind kind : {PopulationKind::full, PopulationKind::diagonal, PopulationKind::factors}) {
    const PopulationFit fit = fit_population(Measurements(X, nullptr, {}), two_components(kind, d), settings(d), {});
    CHECK(fit.status != PopulationStatus::max_iterations);
    for (std::size_t i = 1; i < fit.history.size(); ++i) CHECK(fit.history[i] > fit.history[i - 1]);
    Vector density(X.n_samples());
    log_density(fit.population, X, density, {});
    // The prior adds little and never anything above 0.
    CHECK(density.sum() >= fit.history.back() - 1e-9 * std::abs(fit.history.back()));
    CHECK(fit.population.weights.sum() == doctest::Approx(1.0).epsilon(1e-14));
  }
}

TEST_CASE("threads change nothing, and a fit can be stopped") {
  const Index d = 3;
  const Measured data(3000, d, 13, true);
  const Gaussians X = data.full();
  PopulationSettings options = settings(d);
  options.max_iterations = 5;
  const Population start = two_components(PopulationKind::full, d);
  Execution one;
  one.n_threads = 1;
  Execution three;
  three.n_threads = 3;
  const PopulationFit a = fit_population(Measurements(X, nullptr, one), start, options, one);
  const PopulationFit b = fit_population(Measurements(X, nullptr, three), start, options, three);
  CHECK(a.history == b.history);
  CHECK(a.population.matrices == b.population.matrices);
  options.max_iterations = 1000000;
  options.tolerance = 0.0;
  Execution stopped;
  stopped.keep_running = [] { return false; };
  const Measurements measurements(X, nullptr, one);
  CHECK_THROWS_AS(fit_population(measurements, start, options, stopped), Stopped);
}

TEST_CASE("bad measurements and populations are named") {
  const Measured data(4, 2, 17, false);
  Matrix values = data.values;
  values(2, 1) = infinity;
  const Gaussians X(ArrayView(values.data(), 4, 2), std::make_shared<ZeroCovariances>(4, 2));
  CHECK(oracle::error_of([&] { Measurements(X, nullptr, {}); }) ==
        "X row 2, column 1 is inf; it must be finite and at most 1e150 in size, or NaN where it is missing");
  const Gaussians good = data.diagonal();
  const Vector weights = -Vector::Ones(4);
  CHECK(oracle::error_of([&] { Measurements(good, weights.data(), {}); }) ==
        "sample_weight row 0 is -1; it must be finite and >= 0");
  Population population = two_components(PopulationKind::full, 2);
  population.matrices.setZero();
  const Gaussians certain(data.table(), std::make_shared<ZeroCovariances>(4, 2));
  Vector density(4);
  const std::string error = oracle::error_of([&] { log_density(population, certain, density, {}); });
  CHECK(error.find("reg_covar is too small: component 0") == 0);
  population.weights(0) = -1.0;
  CHECK(oracle::error_of([&] { population.check("init"); }) == "init has weights that are negative or all 0");
}

TEST_CASE("with labels, components of own shapes are fitted to their class alone, tied ones share theirs") {
  const Index d = 2;
  const Index n = 60;
  const Measured data(n, d, 11, true);
  const Gaussians X = data.diagonal();
  Vector of_first = Vector::Zero(n);
  of_first.head(40).setOnes();
  const Vector of_second = Vector::Ones(n) - of_first;
  const Measurements first(X, of_first.data(), {});
  const Measurements second(X, of_second.data(), {});
  for (const PopulationKind kind : {PopulationKind::full, PopulationKind::diagonal, PopulationKind::factors}) {
    Population start = two_components(kind, d);
    start.classes = {0, 1};
    PopulationSettings options = settings(d);
    options.tolerance = 1e-10;
    const PopulationFit own = fit_population({&first, &second}, start, options, {});
    CHECK(own.population.weights(0) == doctest::Approx(40.0 / 60.0).epsilon(1e-6));
    for (Index c = 0; c < 2; ++c) {
      const Population of_class = start.components(c, 1);
      const PopulationFit alone = fit_population(c == 0 ? first : second, of_class, options, {});
      CHECK((own.population.covariance(c) - alone.population.covariance(0)).norm() < 1e-3);
      CHECK((own.population.means.row(c) - alone.population.means.row(0)).norm() < 1e-3);
    }
    start.take_shape(1, 0);
    start.tied = true;
    const PopulationFit tied = fit_population({&first, &second}, start, options, {});
    CHECK(tied.population.covariance(0) == tied.population.covariance(1));
    CHECK(tied.history.back() <= own.history.back() + 1e-6);
    for (std::size_t i = 1; i < tied.history.size(); ++i) CHECK(tied.history[i] >= tied.history[i - 1]);
  }
}

TEST_CASE("populations of classes that make no sense are refused") {
  const Measured data(10, 2, 12, false);
  const Gaussians X = data.diagonal();
  const Measurements all(X, nullptr, {});
  Population start = two_components(PopulationKind::full, 2);
  start.classes = {0, 1};
  CHECK_THROWS_AS(fit_population(all, start, settings(2), {}), std::invalid_argument);
  start.classes = {1, 0};
  CHECK_THROWS_AS(fit_population({&all, &all}, start, settings(2), {}), std::invalid_argument);
  start.classes = {0, 1};
  start.tied = true;  // and the covariances differ
  CHECK_THROWS_AS(fit_population({&all, &all}, start, settings(2), {}), std::invalid_argument);
}
