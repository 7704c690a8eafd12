// Exact identities of the objective: what must not change when data are scaled, turned, renamed or repeated.
#include "halosvm/objective/local_objective.hpp"
#include "oracle/dense_algebra.hpp"
#include "oracle/gradients.hpp"
#include "oracle/normal_quadrature.hpp"
#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

using halosvm::ArrayView;
using halosvm::Evaluation;
using halosvm::Index;
using halosvm::Matrix;
using halosvm::Vector;
using oracle::all_batches;
using oracle::Batch;
using oracle::BatchMaker;
using oracle::DenseObjective;
using oracle::difference;
using oracle::distance;
using oracle::evaluate;
using oracle::joined;
using oracle::Point;
using oracle::Problem;
using oracle::real;
using oracle::RealVector;
using oracle::same_bits;
using oracle::times_hessian;

TEST_CASE("(w, b)'H(w, b) is the weighted sum of phi(z)/s, and J's own terms satisfy Euler's identity") {
  oracle::Random random(4);
  for (const Batch& batch : all_batches(14, 3, 65)) {
    CAPTURE(batch.name);
    const Problem problem(batch, 1, 11);
    const Point at(1, 3, random);
    const Evaluation product = times_hessian(problem.objective(), at, at);
    const DenseObjective dense = problem.dense();
    const RealVector u = joined(at.W.row(0).transpose(), at.b(0));
    real want = real{problem.lam} * at.W.squaredNorm();
    for (Index i = 0; i < problem.n(); ++i) {
      const real s = dense.spread(i, u);
      if (s > 0) want += real{dense.c(i)} * oracle::normal_density(dense.margin(i, u) / s) / s;
    }
    const double got = product.coef.row(0).dot(at.W.row(0)) + product.intercept(0) * at.b(0);
    CHECK(oracle::relative_error(got, want) < 1e-12);
  }
}

TEST_CASE(
    "diagonal, full with zero off-diagonal and low rank with roots agree; so do isotropic and full, zero and hinge") {
  constexpr Index n = 40;
  constexpr Index d = 4;
  oracle::Random random(6);
  std::vector<double> variances;
  std::vector<double> roots(n * d * d, 0.0);
  std::vector<double> matrices(n * d * d, 0.0);
  std::vector<double> t;
  std::vector<double> spheres(n * d * d, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    t.push_back(random.uniform(0.1, 2.0));
    for (std::size_t j = 0; j < d; ++j) {
      variances.push_back(random.uniform(0.0, 2.0));
      matrices[(i * d + j) * d + j] = variances.back();
      roots[(i * d + j) * d + j] = std::sqrt(variances.back());
      spheres[(i * d + j) * d + j] = t.back();
    }
  }
  const ArrayView all(matrices.data(), n * d, d);
  const std::vector<std::vector<std::shared_ptr<const halosvm::Covariances>>> groups = {
      {std::make_shared<halosvm::DiagonalCovariances>(ArrayView(variances.data(), n, d)),
       std::make_shared<halosvm::FullCovariances>(all, n),
       std::make_shared<halosvm::LowRankCovariances>(ArrayView(roots.data(), n * d, d), n, d)},
      {std::make_shared<halosvm::IsotropicCovariances>(ArrayView(t.data(), n, 1), d),
       std::make_shared<halosvm::FullCovariances>(ArrayView(spheres.data(), n * d, d), n)}};
  for (const auto& group : groups) {
    std::vector<Evaluation> values;
    std::vector<Evaluation> products;
    for (const auto& covariances : group) {
      Problem problem(BatchMaker<double>(n, d, 1).zero(), 3, 13);
      problem.batch.covariances = covariances;
      oracle::Random same(7);
      const Point at(3, d, same);
      const Point direction(3, d, same);
      values.push_back(evaluate(problem.objective(), at.W, at.b));
      products.push_back(times_hessian(problem.objective(), at, direction));
    }
    for (std::size_t i = 1; i < group.size(); ++i) {
      CHECK(difference(values[0], values[i]) < 1e-12);
      CHECK(difference(products[0], products[i]) < 1e-12);
    }
  }
  Problem zero(BatchMaker<double>(n, d, 1).zero(), 3, 13);
  const Point at(3, d, random);
  const Evaluation expected = evaluate(zero.objective(), at.W, at.b);
  zero.loss = "hinge";
  CHECK(difference(expected, evaluate(zero.objective(), at.W, at.b)) < 1e-14);
}

TEST_CASE("the hinge does not look at covariances") {
  std::vector<double> variances(40, std::numeric_limits<double>::quiet_NaN());
  Problem problem(BatchMaker<double>(20, 2, 67).zero(), 1, 14);
  problem.loss = "hinge";
  oracle::Random random(8);
  const Point at(1, 2, random);
  const Evaluation want = evaluate(problem.objective(), at.W, at.b);
  problem.batch.covariances = std::make_shared<halosvm::DiagonalCovariances>(ArrayView(variances.data(), 20, 2));
  CHECK(same_bits(evaluate(problem.objective(), at.W, at.b), want));
  CHECK(distance(times_hessian(problem.objective(), at, at).coef, problem.lam * at.W) == 0.0);
}

TEST_CASE("J is equivariant under scaling, rotation, shift and exchange of the labels") {
  constexpr Index n = 25;
  constexpr Index d = 3;
  oracle::Random random(9);
  const Problem problem(BatchMaker<double>(n, d, 68).full(), 1, 15);
  const Point at(1, d, random);
  const Evaluation want = evaluate(problem.objective(), at.W, at.b);
  // The problem with A S_i A' and A x_i.
  const auto transformed = [&](const Matrix& A) {
    std::vector<double> numbers;
    for (const Matrix& S : problem.batch.dense) {
      const Matrix T = oracle::congruent(A, S);
      numbers.insert(numbers.end(), T.data(), T.data() + T.size());
    }
    Problem out = problem;
    out.X = oracle::product(problem.X, A.transpose());
    out.batch.covariances =
        std::make_shared<halosvm::FullCovariances>(ArrayView(out.batch.keep(std::move(numbers)), n * d, d), n);
    return out;
  };

  const double c = 16.0;
  Problem scaled = transformed(c * Matrix::Identity(d, d));
  scaled.lam *= c * c;
  const Evaluation of_scaled = evaluate(scaled.objective(), at.W / c, at.b);
  CHECK(std::abs(of_scaled.value(0) - want.value(0)) < 1e-14);
  CHECK(distance(of_scaled.coef / c, want.coef) < 1e-14);

  const Matrix Q = oracle::random_orthogonal(d, random);
  const Problem rotated = transformed(Q);
  const Evaluation of_rotated = evaluate(rotated.objective(), oracle::product(at.W, Q.transpose()), at.b);
  CHECK(std::abs(of_rotated.value(0) - want.value(0)) < 1e-13);
  CHECK(distance(oracle::product(of_rotated.coef, Q), want.coef) < 1e-13);

  Problem shifted = problem;
  const Vector a = random.normal_vector(d);
  shifted.X.rowwise() += a.transpose();
  const Evaluation of_shifted = evaluate(shifted.objective(), at.W, at.b - oracle::times(at.W, a));
  CHECK(std::abs(of_shifted.value(0) - want.value(0)) < 1e-14);
  CHECK(distance(of_shifted.coef - of_shifted.intercept(0) * a.transpose(), want.coef) < 1e-14);

  Problem flipped = problem;
  for (auto& code : flipped.codes) code = static_cast<std::int16_t>(1 - code);
  const Evaluation of_flipped = evaluate(flipped.objective(), -at.W, -at.b);
  CHECK(std::abs(of_flipped.value(0) - want.value(0)) < 1e-15);
  CHECK(distance(-of_flipped.coef, want.coef) < 1e-15);
}

TEST_CASE("integer weights are duplicates, and the scale of the weights does not matter") {
  const Problem problem(BatchMaker<double>(12, 2, 69).diagonal(false), 3, 16);
  Problem weighted = problem;
  Problem repeated = problem;
  std::vector<double> variances;
  std::vector<Index> sources;
  repeated.codes.clear();
  for (Index i = 0; i < 12; ++i) {
    const int copies = i < 3 ? 1 : static_cast<int>(i % 4);
    weighted.weights.push_back(7.5 * copies);
    for (int k = 0; k < copies; ++k) {
      const auto at = static_cast<std::size_t>(i);
      sources.push_back(i);
      repeated.codes.push_back(problem.codes[at]);
      for (Index j = 0; j < 2; ++j) variances.push_back(problem.batch.dense[at](j, j));
    }
  }
  const auto n = static_cast<Index>(sources.size());
  repeated.X.resize(n, 2);
  for (Index i = 0; i < n; ++i) repeated.X.row(i) = problem.X.row(sources[static_cast<std::size_t>(i)]);
  repeated.batch.covariances =
      std::make_shared<halosvm::DiagonalCovariances>(ArrayView(repeated.batch.keep(std::move(variances)), n, 2));
  oracle::Random random(10);
  const Point at(3, 2, random);
  CHECK(difference(evaluate(weighted.objective(), at.W, at.b), evaluate(repeated.objective(), at.W, at.b)) < 1e-15);
}

TEST_CASE("problem k of one against the rest is the binary problem of class k") {
  const Problem all(BatchMaker<double>(30, 3, 70).full(), 4, 17);
  oracle::Random random(11);
  const Point at(4, 3, random);
  const Point direction(4, 3, random);
  const Evaluation gradient = evaluate(all.objective(), at.W, at.b);
  const Evaluation product = times_hessian(all.objective(), at, direction);
  for (Index k = 0; k < 4; ++k) {
    Problem one = all;
    one.n_problems = 1;
    for (auto& code : one.codes) code = code == k ? 1 : 0;
    Point at_k = at;
    Point along_k = direction;
    at_k.W = at.W.row(k);
    at_k.b = at.b.segment(k, 1);
    along_k.W = direction.W.row(k);
    along_k.b = direction.b.segment(k, 1);
    const Evaluation binary = evaluate(one.objective(), at_k.W, at_k.b);
    const Evaluation binary_product = times_hessian(one.objective(), at_k, along_k);
    CHECK(std::abs(gradient.value(k) - binary.value(0)) < 1e-15);
    CHECK(distance(gradient.coef.row(k), binary.coef) < 1e-14);
    CHECK(distance(product.coef.row(k), binary_product.coef) < 1e-14);
  }
}
