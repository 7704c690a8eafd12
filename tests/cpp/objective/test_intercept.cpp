// LocalObjective::exact_intercept, the intercept that minimises J for fixed coefficients.
#include "halosvm/objective/local_objective.hpp"
#include "oracle/line.hpp"
#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using halosvm::ArrayView;
using halosvm::Index;
using halosvm::LocalObjective;
using halosvm::Matrix;
using halosvm::Vector;
using oracle::BatchMaker;
using oracle::Example;
using oracle::examples;
using oracle::excess;
using oracle::Line;
using oracle::Problem;
using oracle::Random;
using oracle::real;

TEST_CASE("the intercept of uncertain examples is the root that bisection finds") {
  Random random(1);
  for (int set = 0; set < 50; ++set) {
    const Line line(examples(2 + random.below(40), 1.0, random, [&] { return random.uniform(0.2, 2.0); }));
    const double b = line.intercept(random.normal());
    CHECK(std::abs(static_cast<double>(b - line.best())) < 1e-13);
    CHECK(std::abs(static_cast<double>(line.slope(b))) < 2e-15);
  }
}

TEST_CASE("the intercept of certain examples is the middle of the interval of minimisers") {
  // All scores are multiples of 1/8 and all weights whole, so the oracle below computes without rounding.
  Random random(2);
  int intervals = 0;
  for (int set = 0; set < 300; ++set) {
    std::vector<Example> data;
    const Index n = set < 150 ? 2 + 2 * random.below(10) : 2 + random.below(60);
    for (Index i = 0; i < n; ++i) {
      const double weight = set < 150 ? 1.0 : static_cast<double>(random.below(3)) + (i < 2 ? 1.0 : 0.0);
      data.push_back({static_cast<double>(random.below(65) - 32) / 8.0, 0.0, i % 2 == 0, weight});
    }
    std::vector<double> kinks;
    for (const Example& e : data) {
      if (e.weight > 0.0) kinks.push_back((e.positive ? 1.0 : -1.0) - e.score);
    }
    std::sort(kinks.begin(), kinks.end());
    const auto slope_between = [&](double b) {  // weight that pulls b up less weight that pulls it down
      double sum = 0.0;
      for (const Example& e : data) {
        const double kink = (e.positive ? 1.0 : -1.0) - e.score;
        if (e.positive && kink > b) sum += e.weight;
        if (!e.positive && kink < b) sum -= e.weight;
      }
      return sum;
    };
    double low = kinks.back();
    double high = kinks.back();
    for (std::size_t i = 0; i + 1 < kinks.size(); ++i) {
      if (kinks[i] == kinks[i + 1]) continue;
      const double slope = slope_between(0.5 * (kinks[i] + kinks[i + 1]));
      if (slope > 0.0) continue;
      low = kinks[i];
      high = slope < 0.0 ? low : kinks[i + 1];
      break;
    }
    intervals += high > low ? 1 : 0;
    CAPTURE(set);
    const Line line(data);
    CHECK(line.intercept(random.normal()) == doctest::Approx(0.5 * (low + high)).epsilon(1e-14));
    CHECK(line.intercept(-50.0, "hinge") == doctest::Approx(0.5 * (low + high)).epsilon(1e-14));
  }
  CHECK(intervals > 20);
}

TEST_CASE("two balanced classes far apart leave a gap, and the intercept is its middle, also for many examples") {
  for (const Index n : {2, 100, 5000, 20000}) {
    CAPTURE(n);
    std::vector<Example> data;
    for (Index i = 0; i < n; ++i) {
      const double step = static_cast<double>(i) / static_cast<double>(2 * n);
      data.push_back(i % 2 == 0 ? Example{3.0 + step, 0.0, true, 1.0} : Example{-5.0 - step, 0.0, false, 1.0});
    }
    // The positive ones want b >= 1 - 3, the negative ones, whose nearest is the second example, b <= -1 + 5.
    CHECK(Line(data).intercept() == doctest::Approx(1.0 + 0.25 / static_cast<double>(n)).epsilon(1e-14));
  }
}

TEST_CASE("the intercept is optimal for 200 random sets of certain, nearly certain and uncertain examples") {
  Random random(3);
  for (int set = 0; set < 200; ++set) {
    const double scale = std::pow(10.0, random.uniform(-3.0, 4.0));
    const auto spread = [&] {
      switch (random.below(6)) {
        case 0:
          return 0.0;
        case 1:
          return 1e-12;
        case 2:
          return 1e-6 * random.uniform();
        case 3:
          return 1e-310;
        case 4:
          return 30.0 * scale * random.uniform();
        default:
          return scale * random.uniform();
      }
    };
    std::vector<Example> data = examples(2 + random.below(set % 4 == 0 ? 300 : 12), scale, random, spread);
    for (std::size_t i = 2; i < data.size(); i += 5) data[i].weight = 0.0;
    const Line line(data);
    const double guess = random.below(3) == 0 ? 1e9 * random.normal() : scale * random.normal();
    CAPTURE(set);
    const double b = line.intercept(guess);
    CHECK(excess(line, b) < 3e-15);
    CHECK(line.intercept(guess, "expected_hinge", 3) == b);
  }
}

TEST_CASE("the intercept is optimal for tiny spreads, where the slope is a staircase") {
  Random random(4);
  for (const double spread : {1e-12, 1e-9, 1e-300, 1e-301}) {
    for (int set = 0; set < 20; ++set) {
      CAPTURE(spread);
      const Line line(examples(2 + random.below(100), 1.0, random, [&] { return spread; }));
      CHECK(excess(line, line.intercept(random.normal())) < 3e-15);
    }
  }
}

TEST_CASE("the intercept is optimal for huge spreads and for one heavy example") {
  Random random(5);
  std::vector<Example> data = examples(20, 1.0, random, [] { return 1e6; });
  CHECK(excess(Line(data), Line(data).intercept()) < 3e-15);
  data[3].weight = 1e9;
  CHECK(excess(Line(data), Line(data).intercept()) < 3e-15);
  data[4].std = 0.0;
  data[4].weight = 1e12;
  CHECK(excess(Line(data), Line(data).intercept()) < 3e-15);
}

TEST_CASE("the intercept does not depend on the guess beyond rounding, even one that is not finite") {
  Random random(6);
  const Line line(examples(30, 1.0, random, [&] { return random.uniform(0.2, 2.0); }));
  const double b = line.intercept();
  for (const double guess :
       {b, -3.0, 1e300, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(std::abs(line.intercept(guess) - b) < 1e-14);
  }
}

TEST_CASE("the intercepts of several problems minimise each one's J, for every kind") {
  Random random(7);
  for (const auto& batch : oracle::all_batches(40, 3, 90)) {
    CAPTURE(batch.name);
    const Problem problem(batch, 3, 30);
    const Matrix W = random.normal_matrix(3, 3);
    const Vector b = problem.objective().exact_intercept(W, Vector::Zero(3));
    for (Index k = 0; k < 3; ++k) {
      const auto dense = problem.dense(k);
      const auto value = [&](double at) { return dense.value(oracle::joined(W.row(k).transpose(), at)); };
      const real best = value(b(k));
      for (const double step : {1e-9, 1e-6, 1e-3, 0.1, 1.0, 30.0}) {
        CHECK(value(b(k) + step) >= best - 1e-15L);
        CHECK(value(b(k) - step) >= best - 1e-15L);
      }
    }
  }
}

TEST_CASE("without an intercept the intercept is zero") {
  Problem problem(BatchMaker<double>(20, 2, 91).diagonal(false), 3, 31);
  problem.fit_intercept = false;
  CHECK(problem.objective().exact_intercept(Matrix::Ones(3, 2), Vector::Ones(3)) == Vector::Zero(3));
}

TEST_CASE("the intercept of very many examples is exact enough for the certificate") {
  // lower_bound takes a slope beyond 1e-10 for a kink and falls back to a bound that is looser by orders of magnitude.
  constexpr Index n = 100001;
  Random random(8);
  std::vector<double> scores;
  std::vector<std::int16_t> codes;
  std::vector<double> different;
  for (Index i = 0; i < n; ++i) {
    codes.push_back(static_cast<std::int16_t>(random.uniform() < 0.3 ? 1 : 0));
    scores.push_back(random.normal() + codes.back());
    different.push_back(random.uniform(0.1, 1.0));
  }
  const std::vector<double> equal(n, 0.7);
  for (const auto& stds : {different, equal}) {
    const auto covariances = std::make_shared<halosvm::IsotropicCovariances>(ArrayView(stds.data(), n, 1, true), 1);
    const LocalObjective objective(halosvm::Gaussians(ArrayView(scores.data(), n, 1), covariances), {codes.data(), 1},
                                   nullptr, 1.0, halosvm::make_loss("expected_hinge"), true, {});
    const Vector b = objective.exact_intercept(Matrix::Ones(1, 1), Vector::Zero(1));
    halosvm::Evaluation at(1, 1);
    objective.value_and_gradient(Matrix::Ones(1, 1), b, at);
    CHECK(std::abs(at.intercept(0)) < 1e-10);
  }
}

TEST_CASE("problems that share a pass have the intercepts of each alone, in groups and with any number of threads") {
  // More numbers than are kept at once, so that passes take some problems each.
  constexpr Index n = 40001;
  constexpr Index d = 3;
  constexpr Index problems = 9;
  Random random(12);
  const Matrix means = random.normal_matrix(n, d);
  Matrix stds = random.normal_matrix(n, d).cwiseAbs();
  const Matrix W = random.normal_matrix(problems, d);
  const Vector guess = random.normal_matrix(problems, 1);
  std::vector<std::int16_t> codes;
  for (Index i = 0; i < n; ++i) codes.push_back(static_cast<std::int16_t>(i < problems ? i : random.below(problems)));
  for (const char* loss : {"expected_hinge", "hinge"}) {
    std::vector<Vector> results;
    for (const int n_threads : {1, 2, 4}) {
      halosvm::Execution execution;
      execution.n_threads = n_threads;
      const auto covariances = std::make_shared<halosvm::DiagonalCovariances>(ArrayView(stds.data(), n, d, true));
      const LocalObjective together(halosvm::Gaussians(ArrayView(means.data(), n, d), covariances),
                                    {codes.data(), problems}, nullptr, 1.0, halosvm::make_loss(loss), true, execution);
      results.push_back(together.exact_intercept(W, guess));
      if (n_threads > 1) continue;
      for (Index k = 0; k < problems; ++k) {
        const double alone = together.only(k).exact_intercept(W.row(k), guess.segment(k, 1))(0);
        CHECK(std::abs(results[0](k) - alone) < 1e-14);
      }
    }
    CHECK(results[1] == results[0]);
    CHECK(results[2] == results[0]);
  }
}
