// Limits of readings: closed forms, expectation propagation of what is independent, and what is refused.
#include "halosvm/population/empirical_bayes.hpp"

#include "halosvm/gaussians/covariances/diagonal.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace halosvm;  // NOLINT(google-build-using-namespace)

namespace {

const double none = std::numeric_limits<double>::quiet_NaN();

struct Row {
  explicit Row(Index d) : values(Matrix::Constant(1, d, none)), variances(Matrix::Constant(1, d, 0.5)) {
    lower = upper = values;
    population.weights = Vector::Ones(1);
    population.means = Matrix::Zero(1, d);
    population.matrices = 0.5 * Matrix::Identity(d, d);
  }

  Gaussians X() const {
    const ArrayView errors(variances.data(), 1, variances.cols());
    return {ArrayView(values.data(), 1, values.cols()), std::make_shared<DiagonalCovariances>(errors)};
  }
  Limits limits() const { return {lower.data(), upper.data()}; }
  double log_density() const {
    Vector out(1);
    halosvm::log_density(population, X(), out, {}, limits());
    return out(0);
  }

  Population population;
  Matrix values, variances, lower, upper;
};

}  // namespace

TEST_CASE("half of the readings lie below the mean, and their true values half as far as they do") {
  Row row(1);
  row.upper(0, 0) = 0.0;
  CHECK(row.log_density() == doctest::Approx(std::log(0.5)));
  const Posteriors posteriors(row.population, row.X(), true, {}, row.limits());
  REQUIRE(posteriors.kind() == Posteriors::Kind::full);
  double mean = 0.0;
  double variance = 0.0;
  PosteriorTarget target;
  target.means = &mean;
  target.matrices = &variance;
  posteriors.write(target);
  const double of_reading = -std::sqrt(2.0 / 3.141592653589793);
  CHECK(mean == doctest::Approx(0.5 * of_reading));
  CHECK(variance == doctest::Approx(0.25 + 0.25 * (1.0 - of_reading * of_reading)));
}

TEST_CASE("limits of independent features multiply") {
  Row row(3);
  row.upper(0, 0) = 0.0;
  row.lower(0, 1) = 0.0;
  CHECK(row.log_density() == doctest::Approx(std::log(0.25)));
  row.lower(0, 2) = -1.0;
  row.upper(0, 2) = 1.0;
  CHECK(row.log_density() == doctest::Approx(std::log(0.25 * std::erf(std::sqrt(0.5)))));
}

TEST_CASE("limits are refused beside values, crossed or infinite, with their place") {
  Row row(2);
  row.upper(0, 1) = 1.0;
  row.values(0, 1) = 2.0;
  CHECK_THROWS_WITH_AS(row.log_density(), doctest::Contains("X_upper row 0, column 1 is 1"), std::invalid_argument);
  row.values(0, 1) = none;
  row.lower(0, 1) = 1.0;
  CHECK_THROWS_WITH_AS(row.log_density(), doctest::Contains("X_lower row 0, column 1 is 1"), std::invalid_argument);
  row.lower(0, 1) = infinity;
  CHECK_THROWS_WITH_AS(row.log_density(), doctest::Contains("it must be finite"), std::invalid_argument);
}
