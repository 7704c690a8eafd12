#include "halosvm/halosvm.hpp"
#include "oracle/errors.hpp"
#include "oracle/no_numbers.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

using halosvm::ArrayView;
using halosvm::FeatureTarget;
using halosvm::FourierMap;
using halosvm::Gaussians;
using halosvm::Index;
using halosvm::InputBall;
using halosvm::Matrix;
using halosvm::Measurements;
using halosvm::NystroemMap;
using halosvm::Population;
using halosvm::PopulationSettings;
using halosvm::Vector;
using oracle::not_a_number;
using oracle::refused;

namespace {

const std::vector<double> means{0.0, 1.0, 2.0, 3.0, 4.0, 5.0};
const std::vector<double> broken{0.0, 1.0, 2.0, not_a_number, 4.0, 5.0};
const std::vector<double> below{0.0, 1.0, 2.0, -3.0, 4.0, 5.0};

Gaussians examples(Index n, Index d, const std::vector<double>& x = means, const std::vector<double>& s = means) {
  return {ArrayView(x.data(), n, d), std::make_shared<halosvm::DiagonalCovariances>(ArrayView(s.data(), n, d, true))};
}

Population normal(Index d) {
  Population population;
  population.weights = Vector::Ones(1);
  population.means = Matrix::Zero(1, d);
  population.matrices = Matrix::Identity(d, d);
  return population;
}

}  // namespace

TEST_CASE("populations refuse outputs, shapes and numbers that cannot be") {
  const Gaussians X = examples(3, 2);
  const auto density = [](const Population& population, const Gaussians& of, Index size) {
    Vector out(size);
    return refused([&] { halosvm::log_density(population, of, out, {}); });
  };
  CHECK(density(normal(2), X, 3).empty());
  CHECK(density(normal(2), examples(3, 2, broken), 3).empty());  // NaN: a value that is missing
  CHECK(density(normal(2), X, 2) == "out");
  CHECK(density(normal(3), X, 3) == "X");
  CHECK(density(normal(2), examples(3, 2, means, below), 3) == "covariances");
  CHECK(density(Population(), X, 3) == "population");
  Population odd = normal(2);
  odd.matrices(0, 0) = not_a_number;
  CHECK(density(odd, X, 3) == "population");
  odd = normal(2);
  odd.matrices = Matrix::Identity(3, 3);
  CHECK(density(odd, X, 3) == "population");
  CHECK(refused([&] { halosvm::Posteriors(odd, X, true, {}); }) == "population");
  CHECK(refused([&] { halosvm::Posteriors(normal(3), X, true, {}); }) == "X");
  CHECK(refused([&] { normal(2).covariance(1); }) == "k");
  CHECK(refused([&] { normal(2).covariance(-1); }) == "k");
}

TEST_CASE("fits of populations refuse settings and weights that cannot be") {
  const Gaussians X = examples(3, 2);
  const Measurements measured(X, nullptr, {});
  PopulationSettings settings;
  settings.prior = Vector::Ones(2);
  settings.scale = Vector::Ones(2);
  const auto fit = [&](const Population& start, const PopulationSettings& how) {
    return refused([&] { halosvm::fit_population(measured, start, how, {}); });
  };
  CHECK(fit(normal(2), settings).empty());
  CHECK(fit(normal(3), settings) == "init");
  CHECK(fit(Population(), settings) == "init");
  PopulationSettings odd = settings;
  odd.max_iterations = 0;
  CHECK(fit(normal(2), odd) == "max_iterations");
  odd = settings;
  odd.tolerance = not_a_number;
  CHECK(fit(normal(2), odd) == "tolerance");
  odd = settings;
  odd.prior = Vector::Ones(1);
  CHECK(fit(normal(2), odd) == "prior");
  odd = settings;
  odd.scale(1) = not_a_number;
  CHECK(fit(normal(2), odd) == "scale");
  for (const double bad : {not_a_number, halosvm::infinity, -1.0}) {
    const double weights[] = {1.0, bad, 1.0};
    CHECK(refused([&] { Measurements(X, weights, {}); }) == "sample_weight");
  }
}

TEST_CASE("Fourier features and their bounds refuse maps, outputs and numbers that cannot be") {
  const Gaussians X = examples(3, 2);
  const FourierMap map{Matrix::Ones(4, 2), Vector::Zero(2)};
  const auto features = [](const FourierMap& of, const Gaussians& at) {
    std::vector<double> memory(100);
    FeatureTarget out;
    out.means = memory.data();
    return refused([&] { halosvm::fourier_features(of, at, out, {}); });
  };
  const auto bound = [](const FourierMap& of, const Gaussians& at, const InputBall& ball, Index size) {
    Vector out(size);
    return refused([&] { halosvm::fourier_bound(of, at, ball, false, out, {}); });
  };
  CHECK(features(map, X).empty());
  CHECK(bound(map, X, {}, 3).empty());
  CHECK(bound(map, X, {}, 2) == "out");
  for (const double bad : {not_a_number, halosvm::infinity}) {
    CHECK(features({Matrix::Constant(4, 2, bad), Vector::Zero(2)}, X) == "frequencies");
    CHECK(features({Matrix::Ones(4, 2), Vector::Constant(2, bad)}, X) == "phases");
  }
  CHECK(features({Matrix::Ones(4, 3), Vector::Zero(2)}, X) == "frequencies");
  CHECK(features({Matrix::Ones(4, 2), Vector::Zero(5)}, X) == "phases");
  CHECK(features(map, examples(3, 2, broken)) == "means");
  CHECK(bound(map, examples(3, 2, means, below), {}, 3) == "covariances");
  for (const double bad : {not_a_number, halosvm::infinity, -1.0}) {
    CHECK(bound(map, X, {bad, 2.0}, 3) == "radius");
    CHECK(refused([&] {
            Vector out(3);
            halosvm::largest_steps(X, Vector::Constant(1, bad), {}, out, {});
          }) == "scale");
  }
  CHECK(bound(map, X, {1.0, not_a_number}, 3) == "norm");
  Vector small(2);
  CHECK(refused([&] { halosvm::largest_steps(X, Vector::Ones(1), {}, small, {}); }) == "out");
  CHECK(refused([&] { halosvm::largest_steps(X, Vector::Ones(3), {}, small, {}); }) == "scale");
}

TEST_CASE("Nystroem features refuse maps and numbers that cannot be") {
  const auto features = [](const NystroemMap& of, const Gaussians& at) {
    std::vector<double> memory(100);
    FeatureTarget out;
    out.means = memory.data();
    return refused([&] { halosvm::nystroem_features(of, at, out, {}); });
  };
  const Gaussians X = examples(3, 2);
  const Matrix projection = Matrix::Ones(2, 3);
  const Vector gamma = Vector::Ones(1);
  CHECK(features({gamma, X, projection}, X).empty());
  CHECK(features({gamma, X, Matrix::Ones(2, 2)}, X) == "projection");
  CHECK(features({gamma, X, Matrix::Constant(2, 3, not_a_number)}, X) == "projection");
  CHECK(features({gamma, examples(2, 3), Matrix::Ones(2, 2)}, X) == "Z");
  CHECK(features({Vector::Constant(1, not_a_number), X, projection}, X) == "gamma");
  CHECK(features({gamma, examples(3, 2, broken), projection}, X) == "means");
  CHECK(features({gamma, X, projection}, examples(3, 2, means, below)) == "covariances");
}
