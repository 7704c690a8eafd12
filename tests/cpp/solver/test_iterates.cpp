// Iterates of a walk: whatever columns its steps touch, the walk is that of whole vectors in extended precision.
#include "halosvm/solver/iterates.hpp"
#include "oracle/dense_algebra.hpp"
#include "oracle/dense_objective.hpp"
#include "oracle/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

using halosvm::GradientStep;
using halosvm::Index;
using halosvm::Iterates;
using halosvm::Matrix;
using halosvm::Rows;
using halosvm::Support;
using halosvm::Vector;
using oracle::RealMatrix;
using oracle::RealVector;

namespace {

/// Examples of which each stores a few columns, the first one always; every ninth row stores all.
struct Sparse {
  Sparse(Index n, Index n_features, std::uint64_t seed) : d(n_features), random(seed) {
    offsets.push_back(0);
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < d; ++j) {
        if (j == 0 || i % 9 == 8 || random.uniform() < 3.0 / static_cast<double>(d)) {
          values.push_back(j == 0 ? 5.0 + random.normal() : random.normal());
          columns.push_back(static_cast<std::int32_t>(j));
        }
      }
      offsets.push_back(static_cast<std::int32_t>(values.size()));
    }
  }
  halosvm::Gaussians gaussians() const {
    const auto n = static_cast<Index>(offsets.size()) - 1;
    return {halosvm::SparseView(values.data(), columns.data(), offsets.data(), n, d), halosvm::no_covariances(n, d)};
  }
  Index d;
  oracle::Random random;
  std::vector<double> values;
  std::vector<std::int32_t> columns, offsets;
};

/// The walk of whole vectors.
struct Plain {
  RealMatrix w, average;
  RealVector centre;

  void move_centre(const Vector& x, double share) {
    for (Index j = 0; j < x.size(); ++j) centre(j) += share * (x(j) - centre(j));
  }
  void advance(const GradientStep& step, const Matrix& gradient) {
    for (Index k = 0; k < w.rows(); ++k) {
      for (Index j = 0; j < w.cols(); ++j) {
        w(k, j) =
            step.kept(k) * w(k, j) + step.centred(k) * centre(j) - static_cast<long double>(step.rate) * gradient(k, j);
      }
      const long double norm = w.row(k).norm();
      if (norm > step.radius) w.row(k) *= step.radius / norm;
      for (Index j = 0; j < w.cols(); ++j) average(k, j) += step.share * (w(k, j) - average(k, j));
    }
  }
  RealVector times(const RealVector& x) const {
    RealVector out = RealVector::Zero(w.rows());
    for (Index k = 0; k < w.rows(); ++k) {
      for (Index j = 0; j < w.cols(); ++j) out(k) += w(k, j) * x(j);
    }
    return out;
  }
};

/// |a - b| / (1 + |b|).
double difference(const Matrix& a, const RealMatrix& b) {
  long double square = 0;
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < a.cols(); ++j) square += (a(i, j) - b(i, j)) * (a(i, j) - b(i, j));
  }
  return static_cast<double>(std::sqrt(square) / (1.0L + b.norm()));
}

}  // namespace

TEST_CASE("a walk by few columns is that of whole vectors, its averages, centre, radius and products included") {
  for (const Index problems : {1, 3}) {
    for (const double radius : {halosvm::infinity, 0.7}) {
      CAPTURE(problems);
      CAPTURE(radius);
      Sparse data(900, 60, 4);
      oracle::Random random(5);
      const halosvm::Gaussians examples = data.gaussians();
      const Matrix start = random.normal_matrix(problems, data.d);
      Iterates at(start, random.normal_vector(data.d));
      Plain plain{start.cast<long double>(), RealMatrix::Zero(problems, data.d), at.centre.cast<long double>()};
      Support support(data.d);
      Matrix row(1, data.d);
      Matrix memory = Matrix::Zero(problems, data.d);
      GradientStep step;
      step.radius = radius;
      Index few = 0;
      for (Index t = 1; t <= examples.n_samples(); ++t) {
        CAPTURE(t);
        const Rows rows{t - 1, 1};
        support.find(examples, rows, true);
        if (!support.all()) ++few;
        const Vector x = examples.means().block(rows, row.data()).row(0).transpose();
        const double share = t % 5 == 0 ? 0.0 : 1.0 / static_cast<double>(t);
        const RealVector point = x.cast<long double>();
        const RealVector before = point - plain.centre;
        CHECK(at.move_centre(support, x, share) ==
              doctest::Approx(static_cast<double>(before.squaredNorm())).epsilon(1e-11));
        plain.move_centre(x, share);
        const Matrix& weights = at.weights(support, memory);
        const long double norm = plain.w.norm();
        const RealVector scores = oracle::times(weights, x).cast<long double>() - plain.times(point);
        CHECK(scores.norm() < 1e-10L * (1.0L + norm));
        const Matrix gradient = oracle::product(random.normal_matrix(problems, 1), x.transpose());
        step.kept = Vector::Constant(problems, t == 300 ? 0.0 : 1.0 - 1.0 / static_cast<double>(t + 3));
        step.centred = random.normal_vector(problems) / static_cast<double>(t + 3);
        step.rate = 1.0 / static_cast<double>(t + 3);
        step.share = t % 7 == 0 ? 0.0 : 2.0 / static_cast<double>(t + 1);
        at.advance(support, step, gradient);
        plain.advance(step, gradient);
        const RealVector along = at.along_centre.cast<long double>() - plain.times(plain.centre);
        CHECK(along.norm() < 1e-11L * (1.0L + plain.w.norm() * plain.centre.norm()));
        RealVector squares = at.square.cast<long double>();
        for (Index k = 0; k < problems; ++k) squares(k) -= plain.w.row(k).squaredNorm();
        CHECK(squares.norm() < 1e-11L * (1.0L + plain.w.squaredNorm()));
        CHECK(at.centre_square == doctest::Approx(static_cast<double>(plain.centre.squaredNorm())).epsilon(1e-11));
        if (t % 100 != 0) continue;
        Iterates now = at;
        now.settle();
        CHECK(difference(now.coef, plain.w) < 1e-11);
        CHECK(difference(now.average, plain.average) < 1e-11);
        CHECK(difference(now.centre, plain.centre) < 1e-11);
      }
      CHECK(few == 800);
    }
  }
}

TEST_CASE("steps of few columns leave the other numbers in memory alone, most of the time") {
  const Sparse data(400, 2000, 6);
  const halosvm::Gaussians examples = data.gaussians();
  Iterates at(Matrix::Ones(1, data.d), Vector::Ones(data.d));
  Support support(data.d);
  const Matrix gradient = Matrix::Zero(1, data.d);
  GradientStep step{Vector::Ones(1), Vector::Ones(1), 0.1, halosvm::infinity, 0.0};
  Index settled = 0;
  for (Index t = 1000; t < 1400; ++t) {
    if (t % 9 == 7) continue;  // rows in full
    step.kept(0) = 1.0 - 1.0 / static_cast<double>(t);
    step.centred(0) = 1.0 / static_cast<double>(t);
    step.share = 2.0 / static_cast<double>(t);
    support.find(examples, {t - 1000, 1}, true);
    if (support.all()) continue;
    at.advance(support, step, gradient);
    if (at.scale == 1.0 && at.factors(0, 1) == 1.0) ++settled;
  }
  CHECK(settled <= 1);
}

TEST_CASE("the columns of a support are each there once, and clear makes them 0") {
  const Sparse data(40, 60, 7);
  const halosvm::Gaussians examples = data.gaussians();
  Support support(data.d);
  const Index some[] = {3, 5, 3};
  support.find(examples, {0, 3, some}, false);
  CHECK(!support.all());
  std::vector<Index> columns = support.columns();
  std::sort(columns.begin(), columns.end());
  CHECK(std::adjacent_find(columns.begin(), columns.end()) == columns.end());
  Matrix rows = Matrix::Ones(2, data.d);
  support.clear(rows);
  CHECK(rows.sum() == 2.0 * static_cast<double>(data.d - static_cast<Index>(columns.size())));
  support.find(examples, {8, 1}, false);
  CHECK(support.all());
  support.clear(rows);
  CHECK(rows.isZero());
}
