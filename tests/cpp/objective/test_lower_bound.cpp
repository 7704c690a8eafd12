// LocalObjective::lower_bound, the certificate, and LocalObjective::smoothed, which it is made of.
#include "halosvm/objective/local_objective.hpp"
#include "oracle/gradients.hpp"
#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

using halosvm::ArrayView;
using halosvm::Evaluation;
using halosvm::Index;
using halosvm::LocalObjective;
using halosvm::Matrix;
using halosvm::Vector;
using oracle::Batch;
using oracle::BatchMaker;
using oracle::DenseObjective;
using oracle::difference;
using oracle::evaluate;
using oracle::joined;
using oracle::Point;
using oracle::Problem;
using oracle::RealVector;
using oracle::times_hessian;

TEST_CASE("the lower bound is never above the optimum, and meets it at the optimum") {
  oracle::Random random(12);
  struct Case {
    Batch batch;
    std::string loss;
    bool all_uncertain = false;
  };
  std::vector<Case> cases;
  const auto uncertain = [](Batch batch) {  // without the certain first example
    for (auto& S : batch.dense) S += 0.3 * Matrix::Identity(S.rows(), S.cols());
    std::vector<double> numbers;
    for (const auto& S : batch.dense) numbers.insert(numbers.end(), S.data(), S.data() + S.size());
    const Index d = batch.dense[0].rows();
    const auto n = static_cast<Index>(batch.dense.size());
    batch.covariances =
        std::make_shared<halosvm::FullCovariances>(ArrayView(batch.keep(std::move(numbers)), n * d, d), n);
    return batch;
  };
  cases.push_back({uncertain(BatchMaker<double>(40, 2, 71).full()), "expected_hinge", true});
  cases.push_back({uncertain(BatchMaker<double>(40, 2, 72).diagonal(false)), "expected_hinge", true});
  cases.push_back({BatchMaker<double>(40, 2, 73).ragged(2, BatchMaker<double>::Extra::none), "expected_hinge", false});
  cases.push_back({BatchMaker<double>(40, 2, 74).zero(), "expected_hinge", false});
  cases.push_back({BatchMaker<double>(40, 2, 75).diagonal(false), "hinge", false});
  for (const Case& one : cases) {
    for (const bool fit_intercept : {true, false}) {
      for (const double lam : {1e-3, 0.1, 10.0}) {
        CAPTURE(one.batch.name);
        CAPTURE(one.loss);
        CAPTURE(fit_intercept);
        CAPTURE(lam);
        Problem problem(one.batch, 1, 18);
        problem.loss = one.loss;
        problem.fit_intercept = fit_intercept;
        problem.lam = lam;
        problem.add_random_weights(19);
        const DenseObjective dense = problem.dense();
        const RealVector best = dense.minimiser(one.all_uncertain ? 0 : 1e-7L);
        const auto optimum = static_cast<double>(dense.value(best));  // at most 4e-8 above the true one
        const LocalObjective objective = problem.objective();

        const Matrix w = best.head(2).cast<double>().transpose();
        for (int i = 0; i < 40; ++i) {
          const double distance = std::pow(10.0, -0.2 * i + 1.0);
          const Matrix W = i == 39 ? Matrix::Zero(1, 2) : Matrix(w + distance * random.normal_matrix(1, 2));
          const Vector b = objective.exact_intercept(W, Vector::Zero(1));
          const double bound = objective.lower_bound(W, b)(0);
          CHECK(bound <= optimum * (1 + 1e-13));
        }
        const double bound = objective.lower_bound(w, objective.exact_intercept(w, Vector::Zero(1)))(0);
        if (one.all_uncertain) {
          CHECK(bound >= optimum * (1 - 1e-12));
          CHECK(std::abs(evaluate(objective, w, best.tail(1).cast<double>()).value(0) - optimum) <
                1e-14 * (1 + optimum));
        } else if (fit_intercept && lam >= 0.1) {
          // Kinks: the gradient of the smoothed objective and its floor, at best 0.001, cost something.
          CHECK(bound >= optimum - (lam == 0.1 ? 0.1 : 2e-3));
        }
      }
    }
  }
}

TEST_CASE("a smoothed objective has sqrt(s^2 + floor^2) for its spreads, also where the loss ignores covariances") {
  oracle::Random random(15);
  Problem problem(BatchMaker<double>(30, 3, 81).diagonal(false), 1, 26);
  for (const std::string loss : {"expected_hinge", "hinge"}) {
    problem.loss = loss;
    const Point at(1, 3, random);
    DenseObjective dense = problem.dense();
    dense.floor = 0.3L;
    const LocalObjective smooth = problem.objective().smoothed(0.3);
    const Evaluation got = evaluate(smooth, at.W, at.b);
    const RealVector u = joined(at.W.row(0).transpose(), at.b(0));
    CHECK(oracle::relative_error(got.value(0), dense.value(u)) < 1e-14);
    CHECK(difference(got, 0, dense.differenced_gradient(u)) < 1e-11);
    CHECK(difference(times_hessian(smooth, at, at), 0, dense.differenced_hessian_vector(u, u)) < 1e-11);
  }
}

TEST_CASE("the lower bound stays below an optimum at w = 0") {
  for (const Batch& batch : {BatchMaker<double>(40, 2, 71).full(), BatchMaker<double>(40, 2, 71).zero()}) {
    Problem problem(batch, 1, 18);
    for (Index i = 0; i < problem.n(); ++i) problem.codes[static_cast<std::size_t>(i)] = i % 4 == 0 ? 1 : 0;
    const DenseObjective dense = problem.dense();
    const RealVector best = dense.minimiser(1e-7L);
    const auto optimum = static_cast<double>(dense.value(best));
    REQUIRE(best.head(2).norm() < 1e-6);  // the majority's label is all that the data tell
    oracle::Random random(14);
    for (int i = 0; i < 40; ++i) {
      const Matrix W = (i == 0 ? 0.0 : std::pow(10.0, -0.2 * i)) * random.normal_matrix(1, 2);
      const Vector b = problem.objective().exact_intercept(W, Vector::Zero(1));
      CHECK(problem.objective().lower_bound(W, b)(0) <= optimum);
    }
  }
}

TEST_CASE("lower bounds of several problems are those of each alone") {
  const Problem all(BatchMaker<double>(30, 3, 76).diagonal(false), 3, 20);
  oracle::Random random(13);
  const Point at(3, 3, random);
  const Vector b = all.objective().exact_intercept(at.W, at.b);
  const Vector bounds = all.objective().lower_bound(at.W, b);
  for (Index k = 0; k < 3; ++k) {
    Problem one = all;
    one.n_problems = 1;
    for (auto& code : one.codes) code = code == k ? 1 : 0;
    const Vector b_k = one.objective().exact_intercept(at.W.row(k), Vector::Zero(1));
    CHECK(std::abs(b_k(0) - b(k)) < 1e-12);
    CHECK(std::abs(one.objective().lower_bound(at.W.row(k), b_k)(0) - bounds(k)) < 1e-10);
  }
}
