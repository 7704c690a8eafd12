#include "halosvm/objective/local_objective.hpp"
#include "oracle/errors.hpp"
#include "oracle/gradients.hpp"
#include "oracle/normal_quadrature.hpp"
#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using halosvm::ArrayView;
using halosvm::Evaluation;
using halosvm::Index;
using halosvm::LocalObjective;
using halosvm::Matrix;
using halosvm::Vector;
using oracle::all_batches;
using oracle::Batch;
using oracle::BatchMaker;
using oracle::DenseObjective;
using oracle::difference;
using oracle::evaluate;
using oracle::joined;
using oracle::Point;
using oracle::Problem;
using oracle::real;
using oracle::RealVector;
using oracle::same_bits;
using oracle::times_hessian;

namespace {

/// Value, gradient and Hessian-vector products at a random point against the dense oracle's, for every problem.
void check_against_dense(const Problem& problem, oracle::Random& random) {
  CAPTURE(problem.batch.name);
  CAPTURE(problem.loss);
  CAPTURE(problem.n_problems);
  CAPTURE(problem.fit_intercept);
  const Point at = oracle::smooth_point(problem, random);
  const Point direction(problem.n_problems, problem.d(), random);
  const LocalObjective objective = problem.objective();
  const Evaluation gradient = evaluate(objective, at.W, at.b);
  const Evaluation product = times_hessian(objective, at, direction);
  for (Index k = 0; k < problem.n_problems; ++k) {
    const DenseObjective dense = problem.dense(k);
    const RealVector u = joined(at.W.row(k).transpose(), at.b(k));
    RealVector v = joined(direction.W.row(k).transpose(), direction.b(k));
    if (!problem.fit_intercept) v(problem.d()) = 0;
    CHECK(oracle::relative_error(gradient.value(k), dense.value(u)) < 1e-14);
    real slope = 0;
    real curvature = 0;
    for (Index i = 0; i < problem.n(); ++i) {
      const real m = dense.margin(i, u);
      const real s = dense.spread(i, u);
      slope += dense.c(i) * (s > 0 ? DenseObjective::cdf(m / s) : (m > 0 ? real{1} : real{0}));
      curvature += s > 0 ? dense.c(i) * DenseObjective::density(m / s) / s : 0;
    }
    CHECK(oracle::relative_error(gradient.slope(k), slope) < 1e-14);
    CHECK(oracle::relative_error(gradient.curvature(k), curvature) < 1e-13);
    CHECK(difference(gradient, k, dense.differenced_gradient(u)) < 1e-11);
    CHECK(difference(gradient, k, dense.gradient(u)) < 1e-14);
    CHECK(difference(product, k, dense.differenced_hessian_vector(u, v)) < 1e-11);
  }
}

}  // namespace

TEST_CASE("value, gradient and Hessian-vector product equal differences of the dense formula, for every kind") {
  oracle::Random random(1);
  for (const Batch& batch : all_batches(14, 3, 60)) {
    for (const Index problems : {1, 3}) {
      Problem problem(batch, problems, 5);
      check_against_dense(problem, random);
      problem.add_random_weights(6);
      problem.fit_intercept = false;
      check_against_dense(problem, random);
    }
  }
}

TEST_CASE("value, gradient and Hessian-vector product of the hinge equal differences of the dense formula") {
  oracle::Random random(2);
  Problem problem(BatchMaker<double>(30, 3, 61).diagonal(false), 3, 7);
  problem.loss = "hinge";
  check_against_dense(problem, random);
  problem.add_random_weights(8);
  problem.fit_intercept = false;
  check_against_dense(problem, random);
}

TEST_CASE("value and gradient are right over many blocks, and the same to the last bit on any number of threads") {
  oracle::Random random(3);
  for (const Index problems : {1, 3}) {
    for (const Batch& batch : {BatchMaker<double>(1501, 4, 62).diagonal(true), BatchMaker<float>(401, 4, 63).full(),
                               BatchMaker<float>(701, 4, 64).ragged(3, BatchMaker<float>::Extra::variances)}) {
      CAPTURE(batch.name);
      Problem problem(batch, problems, 9);
      problem.add_random_weights(10);
      const Point at(problems, 4, random);
      const Point direction(problems, 4, random);
      const Evaluation gradient = evaluate(problem.objective(1), at.W, at.b);
      const Evaluation product = times_hessian(problem.objective(1), at, direction);
      const Vector intercept = problem.objective(1).exact_intercept(at.W, at.b);
      const Vector bound = problem.objective(1).lower_bound(at.W, intercept);
      for (Index k = 0; k < problems; ++k) {
        const RealVector u = joined(at.W.row(k).transpose(), at.b(k));
        CHECK(oracle::relative_error(gradient.value(k), problem.dense(k).value(u)) < 1e-14);
        CHECK(difference(gradient, k, problem.dense(k).gradient(u)) < 1e-14);
      }
      for (const int n_threads : {2, 4}) {
        CAPTURE(n_threads);
        const LocalObjective objective = problem.objective(n_threads);
        CHECK(same_bits(evaluate(objective, at.W, at.b), gradient));
        CHECK(same_bits(times_hessian(objective, at, direction), product));
        CHECK(objective.exact_intercept(at.W, at.b) == intercept);
        CHECK(objective.lower_bound(at.W, intercept) == bound);
      }
    }
  }
}

TEST_CASE("loss, gradient and Hessian of one example have the golden values of the specification") {
  // The second example lies far on the right side: it only makes the problem one of two classes and halves the weight.
  const std::vector<double> means = {0.3, 0.1, -0.4, 1e3, 0.0, 0.0};
  std::vector<double> matrices(18, 0.0);
  const double S[] = {2, 0.5, 0, 0.5, 1, -0.2, 0, -0.2, 0.8};
  std::copy(std::begin(S), std::end(S), matrices.begin());
  const std::vector<std::int16_t> codes = {0, 1};
  const double lam = 1e-3;
  const auto full = std::make_shared<halosvm::FullCovariances>(ArrayView(matrices.data(), 6, 3), 2);
  const LocalObjective objective(halosvm::Gaussians(ArrayView(means.data(), 2, 3), full), {codes.data(), 1}, nullptr,
                                 lam, halosvm::make_loss("expected_hinge"), true, {});
  oracle::Random random(0);
  Point at(1, 3, random);
  at.W << 1.0, -2.0, 0.5;
  at.b << 0.25;
  Point direction = at;
  direction.W.setOnes();
  direction.b.setOnes();
  const Evaluation gradient = evaluate(objective, at.W, at.b);
  const Evaluation product = times_hessian(objective, at, direction);
  const auto half = [](double x) { return doctest::Approx(0.5 * x).epsilon(1e-13).scale(0.0); };
  CHECK(gradient.value(0) - 0.5 * lam * 5.25 == half(1.5507692989018125));
  CHECK(gradient.intercept(0) == half(0.70408646946727405));
  const double want[] = {0.37232808410419249, -0.187354782275689, -0.15275287317570144};
  const double want_product[] = {0.40340326895358747, 0.29716340991198414, -0.00077048851126267082};
  for (Index j = 0; j < 3; ++j) {
    CHECK(std::abs(gradient.coef(0, j) - lam * at.W(0, j) - 0.5 * want[j]) < 1e-14);
    CHECK(std::abs(product.coef(0, j) - lam - 0.5 * want_product[j]) < 1e-14);
  }
  CHECK(product.intercept(0) == half(0.15304703610080975));
}

TEST_CASE("at w = 0 all spreads vanish and the gradient is that of the hinge") {
  for (const Batch& batch : all_batches(14, 3, 66)) {
    CAPTURE(batch.name);
    const Problem problem(batch, 1, 12);
    const DenseObjective dense = problem.dense();
    const Evaluation at = evaluate(problem.objective(), Matrix::Zero(1, 3), Vector::Zero(1));
    CHECK(at.value(0) == doctest::Approx(1.0).epsilon(1e-15));
    CHECK((at.coef.transpose() + problem.X.transpose() * dense.c.cwiseProduct(dense.y)).norm() < 1e-15);
    CHECK(std::abs(at.intercept(0) + dense.c.dot(dense.y)) < 1e-15);
    oracle::Random random(5);
    Point zero(1, 3, random);
    const Point direction = zero;
    zero.W.setZero();
    zero.b.setZero();
    CHECK((times_hessian(problem.objective(), zero, direction).coef - problem.lam * direction.W).norm() < 1e-15);
  }
}

TEST_CASE("a matrix that is indefinite by rounding counts as certain where w'Sw is negative") {
  const std::vector<double> means = {0.5, -1.0, 2.0, 0.3};
  const std::vector<double> matrices = {1.0, 0.0, 0.0, -1e-9, 1.0, 0.0, 0.0, 1.0};
  const std::vector<std::int16_t> codes = {0, 1};
  const auto full = std::make_shared<halosvm::FullCovariances>(ArrayView(matrices.data(), 4, 2), 2);
  const LocalObjective objective(halosvm::Gaussians(ArrayView(means.data(), 2, 2), full), {codes.data(), 1}, nullptr,
                                 0.5, halosvm::make_loss("expected_hinge"), true, {});
  Matrix w(1, 2);
  w << 0.0, 3.0;
  const Evaluation at = evaluate(objective, w, Vector::Zero(1));
  // m = 1 - 3 < 0 and s = 0 for the first example, m = 0.1 and s = 3 for the second.
  const real second = oracle::expected_hinge_by_quadrature(real{1} - 3 * real{0.3}, 3).value;
  CHECK(oracle::relative_error(at.value(0), real{0.25} * 9 + second / 2) < 1e-14);
  CHECK(at.coef.allFinite());
}

TEST_CASE("an objective knows its labels and whether any example is uncertain") {
  Problem problem(BatchMaker<double>(6, 2, 82).diagonal(false), 3, 27);
  problem.codes = {0, 1, 2, 0, 1, 2};
  for (Index k = 0; k < 3; ++k) {
    for (Index i = 0; i < 6; ++i) CHECK(problem.objective().sign(i, k) == (i % 3 == k ? 1.0 : -1.0));
  }
  CHECK(problem.objective().uses_spread());
  CHECK(!problem.objective().all_certain());
  problem.loss = "hinge";
  CHECK(!problem.objective().uses_spread());
  CHECK(problem.objective().all_certain());
  problem.loss = "expected_hinge";
  problem.batch = BatchMaker<double>(6, 2, 82).zero();
  CHECK(problem.objective().all_certain());
  problem.n_problems = 1;
  problem.codes = {0, 1, 1, 0, 1, 0};
  CHECK(problem.objective().sign(1, 0) == 1.0);
  CHECK(problem.objective().sign(3, 0) == -1.0);
}

TEST_CASE("labels, weights and regularisation that make no sense are named") {
  const Problem valid(BatchMaker<double>(6, 2, 80).zero(), 1, 25);
  const auto error = [&](const auto& spoil) {
    Problem problem = valid;
    spoil(problem);
    return oracle::error_of([&] { problem.objective(); });
  };
  CHECK(error([](Problem&) {}).empty());
  CHECK(error([](Problem& p) { p.codes[4] = 2; }) == "labels row 4 is 2; codes go from 0 to 1");
  CHECK(error([](Problem& p) { p.codes[4] = -1; }) == "labels row 4 is -1; codes go from 0 to 1");
  CHECK(error([](Problem& p) { p.codes.assign(6, 1); }).find("class code 0 has 0") != std::string::npos);
  CHECK(error([](Problem& p) { p.n_problems = 3; }).find("class code 2 has 0") != std::string::npos);
  CHECK(error([](Problem& p) {
          p.n_problems = 3;
          p.codes[0] = 3;
        }) == "labels row 0 is 3; codes go from 0 to 2");
  CHECK(error([](Problem& p) { p.n_problems = 0; }) == "n_problems must be positive");
  CHECK(error([](Problem& p) { p.weights = {1, 1, -1, 1, 1, 1}; }) ==
        "sample_weight row 2 is -1; a weight must be >= 0 and finite");
  CHECK(error([](Problem& p) { p.weights = {1, 1, 1, 1, 1, std::numeric_limits<double>::quiet_NaN()}; }) ==
        "sample_weight row 5 is nan; a weight must be >= 0 and finite");
  CHECK(error([](Problem& p) { p.weights.assign(6, 1e308); }) == "sample_weight has an infinite sum");
  CHECK(error([](Problem& p) { p.weights.assign(6, 0.0); }).find("labels need a positive total weight") == 0);
  for (const double lam : {0.0, -1.0, std::numeric_limits<double>::infinity()}) {
    CHECK(error([&](Problem& p) { p.lam = lam; }).find("regularisation is ") == 0);
  }
  const double means[1] = {};
  const auto empty = std::make_shared<halosvm::ZeroCovariances>(0, 2);
  CHECK(oracle::error_of([&] {
          LocalObjective(halosvm::Gaussians(ArrayView(means, 0, 2), empty), {nullptr, 1}, nullptr, 1.0,
                         halosvm::make_loss("hinge"), true, {});
        }) == "data must have at least one row and one column");
}

TEST_CASE("J at w = 0 with the best intercept is what a search by evaluations finds, for every loss") {
  constexpr Index n = 40;
  const std::vector<double> zeros(n, 0.0);
  const halosvm::Gaussians data(ArrayView(zeros.data(), n, 1), halosvm::no_covariances(n, 1));
  for (const std::string& loss : halosvm::loss_names()) {
    for (const Index positive : {1, 7, 20, 39}) {
      CAPTURE(loss);
      CAPTURE(positive);
      std::vector<std::int16_t> codes(n, 0);
      std::fill_n(codes.begin(), positive, std::int16_t{1});
      const LocalObjective objective(data, {codes.data(), 1}, nullptr, 0.1, halosvm::make_loss(loss), true, {1, {}});
      const double searched = objective.Objective::value_at_zero()(0);
      CHECK(oracle::relative_error(objective.value_at_zero()(0), searched) < 1e-12);
    }
  }
}
