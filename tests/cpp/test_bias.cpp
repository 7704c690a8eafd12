// LocalObjective::exact_bias, the bias that minimises J for fixed coefficients.
#include "halosvm/local_objective.hpp"
#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using halosvm::Index;
using halosvm::LocalObjective;
using halosvm::Matrix;
using halosvm::Table;
using halosvm::Vector;
using oracle::BatchMaker;
using oracle::Problem;
using oracle::Random;
using oracle::real;

namespace {

/// One example as the bias sees it: for w = 1 and one feature, x = score and s = the standard deviation.
struct Example {
  double score;
  double std;
  bool positive;
  double weight;
};

/// A problem with one feature, so that scores and spreads can be chosen at will.
class Line {
 public:
  explicit Line(std::vector<Example> examples) : examples_(std::move(examples)) {
    for (const Example& e : examples_) {
      scores_.push_back(e.score);
      stds_.push_back(e.std);
      codes_.push_back(e.positive ? 1 : 0);
      weights_.push_back(e.weight);
      total_ += e.weight;
    }
  }

  double bias(double guess = 0.0, const std::string& loss = "expected_hinge", int n_threads = 1) const {
    const auto n = static_cast<Index>(scores_.size());
    halosvm::Execution execution;
    execution.n_threads = n_threads;
    const auto covariances = std::make_shared<halosvm::IsotropicCovariances>(Table(stds_.data(), n, 1, true), 1);
    const LocalObjective objective(halosvm::Gaussians(Table(scores_.data(), n, 1), covariances), {codes_.data(), 1},
                                   weights_.data(), 1.0, halosvm::make_loss(loss), true, execution);
    return objective.exact_bias(Matrix::Ones(1, 1), Vector::Constant(1, guess))(0);
  }

  /// sum_i c_i L(m_i, s_i) at b.
  real loss(real b) const {
    real sum = 0;
    for (const Example& e : examples_) {
      const real m = 1 - (e.positive ? 1 : -1) * (e.score + b);
      const real s = e.std;
      const real z = s > 0 ? m / s : 0;
      using Dense = oracle::DenseObjective;
      // The tail form: m Phi + s phi would cancel for tiny spreads.
      const real value = s > 0 ? std::max<real>(m, 0) + s * (Dense::density(z) - std::abs(z) * Dense::cdf(-std::abs(z)))
                               : std::max<real>(m, 0);
      sum += e.weight * value;
    }
    return sum / total_;
  }

  /// -d loss / db from the right.
  real slope(real b) const {
    real sum = 0;
    for (const Example& e : examples_) {
      const real y = e.positive ? 1 : -1;
      const real m = 1 - y * (e.score + b);
      const bool counts = e.positive ? m > 0 : m >= 0;
      sum += e.weight * y * (e.std > 0 ? oracle::DenseObjective::cdf(m / e.std) : (counts ? 1 : 0));
    }
    return sum / total_;
  }

  /// A minimiser, by bisection on the slope until no number lies between.
  real best() const {
    real low = -1e30L;
    real high = 1e30L;
    for (int i = 0; i < 400; ++i) {
      const real middle = (low + high) / 2;
      (slope(middle) > 0 ? low : high) = middle;
    }
    return loss(low) < loss(high) ? low : high;
  }

 private:
  std::vector<Example> examples_;
  std::vector<double> scores_;
  std::vector<double> stds_;
  std::vector<std::int16_t> codes_;
  std::vector<double> weights_;
  real total_ = 0;
};

/// Random examples of both classes; spread() draws each standard deviation.
template <class Spread>
std::vector<Example> examples(Index n, double width, Random& random, const Spread& spread) {
  std::vector<Example> out;
  for (Index i = 0; i < n; ++i) {
    const bool positive = i < 2 ? i == 0 : random.uniform() < 0.5;
    out.push_back({width * (random.normal() + (positive ? 0.5 : -0.5)), spread(), positive, random.uniform(0.1, 2.0)});
  }
  return out;
}

/// How much worse b is than the best, relative to the loss and to what a slope of 1, the largest, does on the way.
double excess(const Line& line, double b) {
  const real best = line.best();
  return static_cast<double>((line.loss(b) - line.loss(best)) / std::max<real>(line.loss(best), std::abs(b - best)));
}

}  // namespace

TEST_CASE("the bias of uncertain examples is the root that bisection finds") {
  Random random(1);
  for (int set = 0; set < 50; ++set) {
    const Line line(examples(2 + random.below(40), 1.0, random, [&] { return random.uniform(0.2, 2.0); }));
    const double b = line.bias(random.normal());
    CHECK(std::abs(static_cast<double>(b - line.best())) < 1e-13);
    CHECK(std::abs(static_cast<double>(line.slope(b))) < 2e-15);
  }
}

TEST_CASE("the bias of certain examples is the middle of the interval of minimisers") {
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
    CHECK(line.bias(random.normal()) == doctest::Approx(0.5 * (low + high)).epsilon(1e-14));
    CHECK(line.bias(-50.0, "hinge") == doctest::Approx(0.5 * (low + high)).epsilon(1e-14));
  }
  CHECK(intervals > 20);
}

TEST_CASE("two balanced classes far apart leave a gap, and the bias is its middle, also for many examples") {
  for (const Index n : {2, 100, 5000, 20000}) {
    CAPTURE(n);
    std::vector<Example> data;
    for (Index i = 0; i < n; ++i) {
      const double step = static_cast<double>(i) / static_cast<double>(2 * n);
      data.push_back(i % 2 == 0 ? Example{3.0 + step, 0.0, true, 1.0} : Example{-5.0 - step, 0.0, false, 1.0});
    }
    // The positive ones want b >= 1 - 3, the negative ones, whose nearest is the second example, b <= -1 + 5.
    CHECK(Line(data).bias() == doctest::Approx(1.0 + 0.25 / static_cast<double>(n)).epsilon(1e-14));
  }
}

TEST_CASE("the bias is optimal for 200 random sets of certain, nearly certain and uncertain examples") {
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
    const double b = line.bias(guess);
    CHECK(excess(line, b) < 3e-15);
    CHECK(line.bias(guess, "expected_hinge", 3) == b);
  }
}

TEST_CASE("the bias is optimal for tiny spreads, where the slope is a staircase") {
  Random random(4);
  for (const double spread : {1e-12, 1e-9, 1e-300, 1e-301}) {
    for (int set = 0; set < 20; ++set) {
      CAPTURE(spread);
      const Line line(examples(2 + random.below(100), 1.0, random, [&] { return spread; }));
      CHECK(excess(line, line.bias(random.normal())) < 3e-15);
    }
  }
}

TEST_CASE("the bias is optimal for huge spreads and for one heavy example") {
  Random random(5);
  std::vector<Example> data = examples(20, 1.0, random, [] { return 1e6; });
  CHECK(excess(Line(data), Line(data).bias()) < 3e-15);
  data[3].weight = 1e9;
  CHECK(excess(Line(data), Line(data).bias()) < 3e-15);
  data[4].std = 0.0;
  data[4].weight = 1e12;
  CHECK(excess(Line(data), Line(data).bias()) < 3e-15);
}

TEST_CASE("the bias does not depend on the guess beyond rounding, even one that is not finite") {
  Random random(6);
  const Line line(examples(30, 1.0, random, [&] { return random.uniform(0.2, 2.0); }));
  const double b = line.bias();
  for (const double guess :
       {b, -3.0, 1e300, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(std::abs(line.bias(guess) - b) < 1e-14);
  }
}

TEST_CASE("the biases of several problems minimise each one's J, for every kind") {
  Random random(7);
  for (const auto& batch : oracle::all_batches(40, 3, 90)) {
    CAPTURE(batch.name);
    const Problem problem(batch, 3, 30);
    const Matrix W = random.normal_matrix(3, 3);
    const Vector b = problem.objective().exact_bias(W, Vector::Zero(3));
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

TEST_CASE("without an intercept the bias is zero") {
  Problem problem(BatchMaker<double>(20, 2, 91).diagonal(false), 3, 31);
  problem.fit_intercept = false;
  CHECK(problem.objective().exact_bias(Matrix::Ones(3, 2), Vector::Ones(3)) == Vector::Zero(3));
}

TEST_CASE("the bias of very many examples is exact enough for the certificate") {
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
    const auto covariances = std::make_shared<halosvm::IsotropicCovariances>(Table(stds.data(), n, 1, true), 1);
    const LocalObjective objective(halosvm::Gaussians(Table(scores.data(), n, 1), covariances), {codes.data(), 1},
                                   nullptr, 1.0, halosvm::make_loss("expected_hinge"), true, {});
    const Vector b = objective.exact_bias(Matrix::Ones(1, 1), Vector::Zero(1));
    halosvm::Evaluation at(1, 1);
    objective.value_and_gradient(Matrix::Ones(1, 1), b, at);
    CHECK(std::abs(at.intercept(0)) < 1e-10);
  }
}
