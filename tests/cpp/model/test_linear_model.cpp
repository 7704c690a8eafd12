#include "halosvm/model/linear_model.hpp"
#include "oracle/covariance_batches.hpp"
#include "oracle/errors.hpp"
#include "oracle/normal_quadrature.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using halosvm::ArrayView;
using halosvm::Execution;
using halosvm::Index;
using halosvm::LinearModel;
using halosvm::Matrix;
using oracle::error_of;
using oracle::real;

namespace {

Execution with_threads(int n_threads) {
  Execution execution;
  execution.n_threads = n_threads;
  return execution;
}

LinearModel random_model(Index n_problems, Index n_features, oracle::Random& random) {
  LinearModel model(n_problems, n_features);
  model.coef = random.normal_matrix(n_problems, n_features);
  model.intercept = random.normal_vector(n_problems);
  return model;
}

}  // namespace

TEST_CASE("a new model is zero") {
  const LinearModel model(2, 3);
  CHECK(model.coef == Matrix::Zero(2, 3));
  CHECK(model.intercept == halosvm::Vector::Zero(2));
}

TEST_CASE_TEMPLATE("scores equal w'x + b for every number of rows, problems and threads", T, double, float) {
  oracle::Random random(1);
  for (const Index n : {0, 1, 63, 64, 65, 9000}) {
    for (const Index problems : {1, 3}) {
      CAPTURE(n);
      CAPTURE(problems);
      const Index d = 5;
      const Matrix X = random.normal_matrix(n, d);
      std::vector<T> stored;
      for (Index i = 0; i < X.size(); ++i) stored.push_back(static_cast<T>(X.data()[i]));
      const LinearModel model = random_model(problems, d, random);
      Matrix want(n, problems);
      for (Index i = 0; i < n; ++i) {
        for (Index k = 0; k < problems; ++k) {
          real f = model.intercept(k);
          for (Index j = 0; j < d; ++j) f += real{model.coef(k, j)} * real{stored[static_cast<std::size_t>(i * d + j)]};
          want(i, k) = static_cast<double>(f);
        }
      }
      for (const int n_threads : {1, 4}) {
        Matrix around = Matrix::Constant(n + 1, problems + 2, 8.0);  // the output may be part of a larger matrix
        halosvm::decision_function(model, ArrayView(stored.data(), n, d), around.block(0, 1, n, problems),
                                   with_threads(n_threads));
        CHECK((around.block(0, 1, n, problems) - want).cwiseAbs().sum() <= 1e-14 * static_cast<double>(n * problems));
        CHECK((around.col(0).array() == 8.0).all());
        CHECK((around.row(n).array() == 8.0).all());
      }
    }
  }
}

TEST_CASE("standard deviations of the score equal sqrt(w'Sw) of the dense matrices, for every kind") {
  oracle::Random random(2);
  const Index d = 4;
  for (const auto& batch : oracle::all_batches(150, d, 50)) {
    CAPTURE(batch.name);
    for (const Index problems : {1, 3}) {
      const LinearModel model = random_model(problems, d, random);
      for (const int n_threads : {1, 3}) {
        Matrix out(150, problems);
        halosvm::decision_std(model, *batch.covariances, out, with_threads(n_threads));
        double worst = 0.0;
        for (Index i = 0; i < 150; ++i) {
          for (Index k = 0; k < problems; ++k) {
            const auto w = model.coef.row(k);
            const Matrix& S = batch.dense[static_cast<std::size_t>(i)];
            const double want = std::sqrt(std::max(0.0, static_cast<double>(w * S * w.transpose())));
            // An almost singular w'Sw is known to about 1e-15 |w|^2 |S| only.
            worst =
                std::max(worst, std::abs(out(i, k) * out(i, k) - want * want) / (w.squaredNorm() * S.norm() + 1e-300));
          }
        }
        CHECK(worst < 1e-14);
      }
    }
  }
}

TEST_CASE("a variance of the score that is negative by rounding gives the standard deviation 0") {
  const double matrix[] = {1.0, 0.0, 0.0, -1e-9};
  LinearModel model(1, 2);
  model.coef << 0.0, 3.0;
  Matrix out(1, 1);
  halosvm::decision_std(model, halosvm::FullCovariances(ArrayView(matrix, 2, 2), 1), out, {});
  CHECK(out(0, 0) == 0.0);
}

TEST_CASE("scores of data with the wrong number of columns are refused with both sizes") {
  const double means[6] = {};
  Matrix out(2, 1);
  const LinearModel model(1, 4);
  CHECK(error_of([&] { halosvm::decision_function(model, ArrayView(means, 2, 3), out, {}); }) ==
        "X has 3 columns, coef has 4");
  CHECK(error_of([&] { halosvm::decision_std(model, halosvm::ZeroCovariances(2, 3), out, {}); }) ==
        "X has 3 columns, coef has 4");
}

TEST_CASE("the probability of a side is Phi(mean / std)") {
  oracle::Random random(3);
  oracle::Worst worst;
  for (int i = 0; i < 500; ++i) {
    const double std = std::pow(10.0, random.uniform(-100.0, 100.0));
    const double mean = random.uniform(-37.0, 37.0) * std;
    worst.add(halosvm::side_probability(mean, std), oracle::cdf_by_quadrature(real{mean} / real{std}), mean, std);
  }
  INFO(worst.where());
  CHECK(worst.error() < (oracle::extended ? 5e-15 : 5e-13));
}

TEST_CASE("a certain score is on its side for sure, and on neither at zero") {
  for (const double std : {0.0, 1e-310}) {
    CHECK(halosvm::side_probability(1e-5, std) == 1.0);
    CHECK(halosvm::side_probability(-1e-5, std) == 0.0);
    CHECK(halosvm::side_probability(0.0, std) == 0.5);
  }
  CHECK(halosvm::side_probability(1e300, 1e-300) == 1.0);
  CHECK(halosvm::side_probability(-1e300, 1e-300) == 0.0);
}
