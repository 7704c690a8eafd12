#include "oracle/problem.hpp"

#include <doctest/doctest.h>

using halosvm::Index;
using halosvm::Matrix;
using halosvm::Vector;
using oracle::Problem;
using oracle::real;

TEST_CASE("moments are the weighted mean and the variance of Gaussians about it, for every kind") {
  for (const auto& batch : oracle::all_batches(700, 3, 110)) {
    CAPTURE(batch.name);
    Problem problem(batch, 1, 50);
    problem.add_random_weights(51);
    const Vector c = problem.dense().c;
    const Vector mean = problem.X.transpose() * c;
    for (const bool fit_intercept : {true, false}) {
      for (const std::string loss : {"expected_hinge", "hinge"}) {
        problem.fit_intercept = fit_intercept;
        problem.loss = loss;
        const Vector centre = fit_intercept ? mean : Vector::Zero(3);
        Vector variance = Vector::Zero(3);
        Vector widest = Vector::Zero(batch.covariances->cancels() && loss != "hinge" ? 3 : 0);
        for (Index i = 0; i < 700; ++i) {
          variance += c(i) * (problem.X.row(i).transpose() - centre).cwiseAbs2();
          if (loss == "hinge") continue;
          const Vector diagonal = batch.dense[static_cast<std::size_t>(i)].diagonal();
          variance += c(i) * diagonal;
          if (widest.size() > 0) widest = widest.cwiseMax(diagonal.cwiseSqrt());
        }
        const halosvm::Moments got = problem.objective().moments();
        CHECK((got.mean - mean).norm() < 1e-14);
        CHECK((got.centre - centre).norm() < 1e-14);
        CHECK((got.variance - variance).norm() < 1e-13);
        REQUIRE(got.widest.size() == widest.size());
        CHECK((got.widest - widest).norm() < 1e-14);
        const halosvm::Moments parallel = problem.objective(4).moments();
        CHECK(parallel.mean == got.mean);
        CHECK(parallel.variance == got.variance);
        CHECK(parallel.widest == got.widest);
      }
    }
  }
}

TEST_CASE("variances of data far from the origin do not cancel") {
  Problem problem(oracle::BatchMaker<double>(500, 2, 111).zero(), 1, 52);
  const Vector near = problem.objective().moments().variance;
  problem.X.array() += 0x1p30;
  CHECK((problem.objective().moments().variance - near).norm() < 1e-6);
}

TEST_CASE("the largest deviations are those of all parts of the data") {
  constexpr Index n = 20000;
  const auto batch = oracle::BatchMaker<double>(n, 3, 112).full();
  Vector widest = Vector::Zero(3);
  for (const Matrix& S : batch.dense) widest = widest.cwiseMax(S.diagonal().cwiseSqrt());
  const Problem problem(batch, 1, 53);
  for (const int threads : {1, 4}) CHECK((problem.objective(threads).moments().widest - widest).norm() < 1e-14);
}
