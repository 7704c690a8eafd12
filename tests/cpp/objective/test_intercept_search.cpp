// The search for the intercept, whatever the loss and the order of the examples.
#include "halosvm/halosvm.hpp"
#include "oracle/line.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using halosvm::Index;
using oracle::Example;
using oracle::examples;
using oracle::excess;
using oracle::Line;
using oracle::Random;

namespace {

/// Smooth losses of certain points, for a search that must not know any loss: log(1 + exp(m)), whose slope never
/// vanishes, and max(0, m)^2, whose slope has no bound.
struct Logistic {
  static constexpr const char* name = "logistic";
  static constexpr halosvm::LossTraits traits = {false, false, false, false, 1.0, 1.0, 0.25, nullptr};

  template <class T>
  static T slope(T m) {
    return 1 / (1 + std::exp(-m));
  }
  template <class T>
  static T curvature(T m) {
    return slope(m) * slope(-m);
  }
  static halosvm::LossFirst first(double m, double /*s*/) {
    return {std::max(m, 0.0) + std::log1p(std::exp(-std::abs(m))), slope(m), 0.0};
  }
  static halosvm::LossSecond second(double m, double /*s*/) { return {curvature(m), 0.0, 0.0}; }
};

struct SquaredHinge {
  static constexpr const char* name = "squared_hinge";
  static constexpr halosvm::LossTraits traits = {false, false, false, false, 1.0, halosvm::infinity, 2.0, nullptr};

  template <class T>
  static T slope(T m) {
    return m > 0 ? 2 * m : 0;
  }
  template <class T>
  static T curvature(T m) {
    return m > 0 ? 2 : 0;
  }
  static halosvm::LossFirst first(double m, double /*s*/) { return {m > 0.0 ? m * m : 0.0, slope(m), 0.0}; }
  static halosvm::LossSecond second(double m, double /*s*/) { return {curvature(m), 0.0, 0.0}; }
};

template <class Scalar>
std::shared_ptr<const halosvm::Loss> loss_of() {
  return std::make_shared<halosvm::BlockLoss<Scalar>>();
}

}  // namespace

TEST_CASE_TEMPLATE("the intercept of a smooth loss is the root of its slope", Scalar, Logistic, SquaredHinge) {
  Random random(9);
  for (int set = 0; set < 300; ++set) {
    const double scale = std::pow(10.0, random.uniform(-3.0, 2.5));
    auto data = examples(2 + random.below(set % 10 == 0 ? 3000 : 40), scale, random, [] { return 0.0; });
    const double offset = random.below(4) == 0 ? 1e8 : 0.0;
    for (Example& e : data) {
      if (set % 3 == 0) e.score = scale * std::round(4.0 * e.score / scale) / 4.0;
      e.score += offset;
    }
    if (set % 7 == 0) {  // one of n
      for (std::size_t i = 0; i < data.size(); ++i) data[i].positive = i == 0;
    }
    CAPTURE(set);
    const Line line(data);
    const double guess = random.below(3) == 0 ? 1e9 * random.normal() : scale * random.normal();
    CHECK(line.template at_root<Scalar>(line.intercept(guess, loss_of<Scalar>())));
  }
}

TEST_CASE("the intercept of a logistic loss may lie far beyond all examples") {
  // For scores y all deficits are -y b: J is least where b is the log of the odds.
  for (const double odds : {1.0, 1e-3, 1e-12, 1e-100, 1e12}) {
    CAPTURE(odds);
    const Line line({{1.0, 0.0, true, odds}, {-1.0, 0.0, false, 1.0}});
    for (const double guess : {0.0, 1.0, -1e9, std::log(odds)}) {
      CHECK(line.intercept(guess, loss_of<Logistic>()) == doctest::Approx(std::log(odds)).epsilon(1e-14));
    }
  }
}

TEST_CASE("where classes are so far apart that no slope is left, the intercept is the middle of the gap") {
  Random random(10);
  for (const double weight : {1.0, 1e-3}) {
    std::vector<Example> data{{2.0, 0.0, true, 1.0}, {-5.0, 0.0, false, weight}};
    for (int i = 0; i < 50; ++i) {
      data.push_back({2.0 + std::abs(random.normal()), 0.0, true, 1.0});
      data.push_back({-5.0 - std::abs(random.normal()), 0.0, false, weight});
    }
    for (const double guess : {0.0, -0.9, 3.9, 100.0, -1e7}) {
      CHECK(Line(data).intercept(guess, loss_of<SquaredHinge>()) == doctest::Approx(1.5).epsilon(1e-15));
    }
    for (Example& e : data) e.score *= 1000.0;  // exp underflows
    for (const double guess : {0.0, 1e3, -1.5e3, 1e6}) {
      CHECK(Line(data).intercept(guess, loss_of<Logistic>()) == doctest::Approx(1500.0).epsilon(1e-15));
    }
  }
}

TEST_CASE("an example without weight does not matter, were it uncertain or far off") {
  const std::vector<Example> data{
      {3.0, 0.0, true, 1.0}, {-5.0, 0.0, false, 1.0}, {4.0, 0.0, true, 1.0}, {-7.0, 0.0, false, 1.0}};
  auto more = data;
  more.push_back({1e6, 2.0, true, 0.0});
  more.push_back({1.5, 0.0, false, 0.0});
  for (const double guess : {0.0, -1.9, 3.9}) {
    CHECK(Line(data).intercept(guess) == doctest::Approx(1.0).epsilon(1e-15));
    CHECK(Line(more).intercept(guess) == doctest::Approx(1.0).epsilon(1e-15));
    CHECK(Line(more).intercept(guess, loss_of<SquaredHinge>()) == doctest::Approx(1.0).epsilon(1e-15));
  }
}

TEST_CASE("the intercept of very many examples is optimal: sorted by class, in turns, one of n, in few places") {
  constexpr Index n = 20000;
  Random random(11);
  for (const char* order : {"sorted", "in turns", "one", "first only"}) {
    for (const char* scores : {"normal", "whole"}) {
      for (const double certain : {0.0, 0.5, 1.0}) {
        std::vector<Example> data;
        for (Index i = 0; i < n; ++i) {
          const std::string kind = order;
          const bool positive = kind == "sorted"     ? i < n / 3
                                : kind == "in turns" ? i % 16 == 0
                                : kind == "one"      ? i == 4000
                                                     : i < 16;
          double score = random.normal() + (positive ? 1.0 : 0.0);
          if (std::string(scores) == "whole") score = std::round(score);
          data.push_back({score, random.uniform() < certain ? 0.0 : random.uniform(0.1, 1.0), positive, 1.0});
        }
        CAPTURE(order);
        CAPTURE(scores);
        CAPTURE(certain);
        const Line line(data);
        const double b = line.intercept();
        CHECK(excess(line, b) < 3e-15);
        for (const int threads : {2, 4}) CHECK(line.intercept(0.0, "expected_hinge", threads) == b);
        if (certain == 1.0) {
          CHECK(line.at_root<Logistic>(line.intercept(0.0, loss_of<Logistic>())));
          CHECK(line.at_root<SquaredHinge>(line.intercept(0.0, loss_of<SquaredHinge>())));
        }
      }
    }
  }
}
