#include "halosvm/objective/local_objective.hpp"
#include "oracle/errors.hpp"
#include "oracle/gradients.hpp"
#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <vector>

using halosvm::Evaluation;
using halosvm::Index;
using halosvm::LocalObjective;
using halosvm::Matrix;
using halosvm::Vector;
using oracle::Point;
using oracle::Problem;

namespace {

/// The largest difference between the columns of the matrix and Hessian-vector products, relative to the largest entry.
/// \param centre means are seen from there: the direction (v, v0) there is (v, v0 - v'centre) in (w, b).
double difference_from_products(const LocalObjective& objective, const Point& at, const Vector& centre) {
  const Index d = objective.n_features();
  const Matrix lower = objective.hessian(at.W, at.b, centre);
  const Matrix full = lower.selfadjointView<Eigen::Lower>();
  double worst = 0.0;
  for (Index j = 0; j < d + (objective.fit_intercept() ? 1 : 0); ++j) {
    Matrix V = Matrix::Zero(1, d);
    Vector v0 = Vector::Zero(1);
    if (j < d) {
      V(0, j) = 1.0;
      v0(0) = -centre(j);
    } else {
      v0(0) = 1.0;
    }
    Evaluation product(1, d);
    objective.hessian_vector(at.W, at.b, V, v0, product);
    const Vector w_part = product.coef.row(0).transpose() - product.intercept(0) * centre;
    worst = std::max(worst, (full.col(j).head(d) - w_part).cwiseAbs().maxCoeff());
    if (objective.fit_intercept()) worst = std::max(worst, std::abs(full(d, j) - product.intercept(0)));
  }
  return worst / full.cwiseAbs().maxCoeff();
}

}  // namespace

TEST_CASE("the Hessian's columns are Hessian-vector products, for every kind of covariance") {
  oracle::Random random(1);
  for (const auto& batch : oracle::all_batches(150, 3, 90)) {
    Problem problem(batch, 1, 15);
    problem.add_random_weights(16);
    for (const bool fit_intercept : {true, false}) {
      problem.fit_intercept = fit_intercept;
      CAPTURE(batch.name);
      CAPTURE(fit_intercept);
      const Point at = oracle::smooth_point(problem, random);
      const Vector centre = fit_intercept ? Vector(random.normal_matrix(3, 1)) : Vector::Zero(3);
      CHECK(difference_from_products(problem.objective(), at, centre) < 1e-12);
      CHECK(difference_from_products(problem.objective().smoothed(0.3), at, centre) < 1e-12);
    }
  }
}

TEST_CASE("the Hessian of some of the examples is that of an objective made of them") {
  oracle::Random random(2);
  const Problem problem(oracle::BatchMaker<double>(40, 3, 91).full(), 1, 17);
  Problem part(oracle::BatchMaker<double>(40, 3, 91).full(), 1, 17);
  part.weights.assign(40, 0.0);
  std::vector<Index> rows;
  for (Index i = 0; i < 40; i += 3) {
    rows.push_back(i);
    part.weights[static_cast<std::size_t>(i)] = 1.0;
  }
  const LocalObjective sampled = problem.objective().sampled(rows);
  const LocalObjective expected = part.objective();
  const Point at(1, 3, random);
  CHECK(sampled.n_samples() == 14);
  const Matrix hessian = sampled.hessian(at.W, at.b, Vector::Zero(3));
  CHECK((hessian - expected.hessian(at.W, at.b, Vector::Zero(3))).cwiseAbs().maxCoeff() < 1e-13);
  Evaluation one(1, 3);
  Evaluation other(1, 3);
  sampled.value_and_gradient(at.W, at.b, one);
  expected.value_and_gradient(at.W, at.b, other);
  CHECK(oracle::relative_error(one.value(0), other.value(0)) < 1e-14);
  CHECK((one.coef - other.coef).norm() < 1e-13);
  CHECK(std::abs(sampled.exact_intercept(at.W, at.b)(0) - expected.exact_intercept(at.W, at.b)(0)) < 1e-12);
  CHECK(std::abs(sampled.value_at_zero()(0) - expected.value_at_zero()(0)) < 1e-14);
}

TEST_CASE("one problem of several is what it is alone") {
  oracle::Random random(3);
  const Problem problem(oracle::BatchMaker<double>(50, 3, 92).diagonal(false), 3, 18);
  const Point at(3, 3, random);
  Evaluation all(3, 3);
  problem.objective().value_and_gradient(at.W, at.b, all);
  for (Index k = 0; k < 3; ++k) {
    const LocalObjective single = problem.objective().only(k);
    Evaluation one(1, 3);
    single.value_and_gradient(at.W.row(k), at.b.segment(k, 1), one);
    CHECK(oracle::relative_error(one.value(0), all.value(k)) < 1e-14);
    CHECK((one.coef.row(0) - all.coef.row(k)).norm() < 1e-14);
    CHECK(std::abs(one.intercept(0) - all.intercept(k)) < 1e-15);
  }
}
