#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

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

TEST_CASE("moments of means that are seen from an origin are those of the means less it, however they are stored") {
  Problem problem(oracle::BatchMaker<double>(300, 3, 113).diagonal(false), 1, 54);
  problem.X.array() += 1000.0;
  std::vector<std::int32_t> columns;
  std::vector<std::int32_t> offsets = {0};
  for (Index i = 0; i < problem.n(); ++i) {
    for (const std::int32_t j : {0, 1, 2}) columns.push_back(j);
    offsets.push_back(static_cast<std::int32_t>(columns.size()));
  }
  const halosvm::SparseMeans sparse({problem.X.data(), columns.data(), offsets.data(), problem.n(), 3});
  const halosvm::DenseMeans dense({problem.X.data(), problem.n(), 3});
  const Vector origin = Vector::LinSpaced(3, 999.0, 1003.0);
  for (const bool fit_intercept : {true, false}) {
    problem.fit_intercept = fit_intercept;
    Problem near = problem;
    near.X.rowwise() -= origin.transpose();
    const halosvm::Moments expected = near.objective().moments();
    for (const halosvm::Means* means :
         {static_cast<const halosvm::Means*>(&sparse), static_cast<const halosvm::Means*>(&dense)}) {
      CAPTURE(means->sparse());
      const auto seen = means->seen_from(origin);
      const halosvm::Moments got = problem.objective().on({seen, problem.batch.covariances}).moments();
      CHECK((got.mean - expected.mean).norm() < 1e-12);
      CHECK((got.centre - expected.centre).norm() < 1e-12);
      CHECK((got.variance - expected.variance).norm() < 1e-12 * expected.variance.norm());
    }
  }
}
