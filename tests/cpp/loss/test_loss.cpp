#include "halosvm/loss/loss.hpp"
#include "halosvm/loss/best_case.hpp"
#include "halosvm/loss/expected_hinge.hpp"
#include "halosvm/loss/hinge.hpp"
#include "halosvm/loss/marginal_logistic.hpp"
#include "oracle/errors.hpp"
#include "oracle/normal_quadrature.hpp"
#include "oracle/random.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using halosvm::BestCase;
using halosvm::ExpectedHinge;
using halosvm::Hinge;
using halosvm::Index;
using halosvm::LossFirst;
using halosvm::LossSecond;
using halosvm::MarginalLogistic;
using oracle::real;
using oracle::Worst;

namespace {

constexpr double tolerance = oracle::extended ? 5e-15 : 1e-12;

bool same(const LossFirst& a, const LossFirst& b) {
  return a.value == b.value && a.slope_m == b.slope_m && a.slope_s2 == b.slope_s2;
}

void add(Worst& worst, double m, double s, const oracle::ExpectedHinge& want) {
  const LossFirst first = ExpectedHinge::first(m, s);
  const LossSecond second = ExpectedHinge::second(m, s);
  worst.add(first.value, want.value, m, s);
  worst.add(first.slope_m, want.slope_m, m, s);
  worst.add(first.slope_s2, want.slope_s2, m, s);
  worst.add(second.mm, want.mm, m, s);
  if (want.mm < 1e-300) return;  // z and z^2 times a number that may be subnormal
  worst.add(second.ms, want.ms, m, s);
  worst.add(second.ss, want.ss, m, s);
}

}  // namespace

TEST_CASE("expected hinge has the golden values of the specification") {
  struct Golden {
    double m, s, value, probability;
  };
  constexpr Golden golden[] = {
      {0.0, 1.0, 0.39894228040143268, 0.5},
      {0.3, 0.7, 0.4545204339315511, 0.66588242910237531},
      {-1.5, 1.0, 0.029306793762604629, 0.066807201268858066},
      {2.0, 0.4, 2.0000000213846621, 0.99999971334842812},
      {-6.0, 1.0, 1.5635697959709664e-10, 9.8658764503769814e-10},
      {-12.0, 1.0, 1.4605201169845548e-34, 1.776482112077679e-33},
      {-30.0, 1.0, 1.6319567340914012e-199, 4.9067139271481871e-198},
  };
  Worst worst;
  for (const Golden& g : golden) {
    const LossFirst at = ExpectedHinge::first(g.m, g.s);
    worst.add(at.value, g.value, g.m, g.s);
    worst.add(at.slope_m, g.probability, g.m, g.s);
  }
  INFO(worst.where());
  CHECK(worst.error() < 5e-15);
}

TEST_CASE("expected hinge equals mpmath for ratios that are no doubles and for extreme scales") {
  struct Golden {
    double m, s, value, probability, density_over_s;
  };
  // mpmath with 400 digits on the exact values of these doubles: m Phi(m/s) + s phi(m/s), Phi(m/s), phi(m/s)/s.
  constexpr Golden golden[] = {
      {0.3, 0.7, 0.45452043393155107888, 0.66588242910237531188, 0.51990960245069086742},
      {2.5e-150, 1e-150, 2.5020041371791281478e-150, 0.99379033467422386364, 1.7528300493568540224e+148},
      {-3.3e-07, 1e-08, 1.2284124472038630819e-248, 4.0611856209157219369e-239, 1.3414196673493921145e-229},
      {1e-09, 0.001, 0.00039894278040163215738, 0.50000039894228040137, 398.9422804012331985},
      {36.9, 1.0, 36.899999999999998579, 1.0, 8.5320877556363434923e-297},
      {-1e+100, 7e+98, 6.5187257431158588901e+51, 1.3432042673007202232e-46, 2.754536720497625072e-144},
  };
  Worst worst;
  for (const Golden& g : golden) {
    const LossFirst at = ExpectedHinge::first(g.m, g.s);
    worst.add(at.value, g.value, g.m, g.s);
    worst.add(at.slope_m, g.probability, g.m, g.s);
    worst.add(at.slope_s2, g.density_over_s, g.m, g.s);
    worst.add(ExpectedHinge::second(g.m, g.s).mm, g.density_over_s, g.m, g.s);
  }
  INFO(worst.where());
  CHECK(worst.error() < 5e-15);
}

TEST_CASE("expected hinge and its derivatives equal quadrature for ratios up to 37 and spreads of every size") {
  oracle::Random random(1);
  Worst worst;
  for (int i = 0; i < 4000; ++i) {
    const double s = std::pow(10.0, random.uniform(-150.0, 150.0));
    const double z = i % 2 == 0 ? random.uniform(-37.0, 37.0) : random.uniform(-3.0, 3.0);
    const double m = z * s;
    add(worst, m, s, oracle::expected_hinge_by_quadrature(m, s));
  }
  for (const double s : {1e-150, 1e-8, 1.0, 1e150}) {
    for (const double z : {-37.0, -1e-12, 0.0, 1e-300, 1e-12, 37.0}) {
      add(worst, z * s, s, oracle::expected_hinge_by_quadrature(real{z * s}, s));
    }
  }
  INFO(worst.where());
  CHECK(worst.error() < tolerance);
}

TEST_CASE("derivatives of the expected hinge equal central differences of its value") {
  oracle::Random random(2);
  for (int i = 0; i < 200; ++i) {
    const double s = random.uniform(0.3, 3.0);
    const double m = random.uniform(-3.0, 3.0);
    const double h = 1e-3;
    const auto value = [](double a, double b) { return ExpectedHinge::first(a, b).value; };
    const auto slope = [h](const auto& f) {
      return (45 * (f(h) - f(-h)) - 9 * (f(2 * h) - f(-2 * h)) + (f(3 * h) - f(-3 * h))) / (60 * h);
    };
    const LossFirst first = ExpectedHinge::first(m, s);
    const LossSecond second = ExpectedHinge::second(m, s);
    const auto along_m = [&](auto f) { return slope([&](double t) { return f(m + t, s); }); };
    const auto along_s = [&](auto f) { return slope([&](double t) { return f(m, s + t); }); };
    const auto slope_m = [](double a, double b) { return ExpectedHinge::first(a, b).slope_m; };
    const auto slope_s = [](double a, double b) { return b * ExpectedHinge::first(a, b).slope_s2; };
    CHECK(std::abs(first.slope_m - along_m(value)) < 1e-11);
    CHECK(std::abs(first.slope_s2 * s - along_s(value)) < 1e-11);
    CHECK(std::abs(second.mm - along_m(slope_m)) < 1e-11);
    CHECK(std::abs(second.ms - along_s(slope_m)) < 1e-11);
    CHECK(std::abs(second.ms - along_m(slope_s)) < 1e-11);
    CHECK(std::abs(second.ss - along_s(slope_s)) < 1e-11);
  }
}

TEST_CASE("expected hinge lies between the hinge and the hinge plus s / sqrt(2 pi)") {
  oracle::Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const double s = std::pow(10.0, random.uniform(-3.0, 3.0));
    const double m = random.normal() * s;
    const double value = ExpectedHinge::first(m, s).value;
    CHECK(value >= std::max(m, 0.0));
    CHECK(value <= (std::max(m, 0.0) + s * 0.39894228040143268) * (1 + 1e-15));
  }
}

TEST_CASE("without spread the expected hinge is the hinge, and its slope at the kink is 1/2") {
  for (const double s : {0.0, 1e-320, 9.9e-301}) {
    CAPTURE(s);
    for (const double m : {-1e300, -2.5, -1e-310, 0.0, 1e-310, 2.5, 1e300}) {
      CAPTURE(m);
      CHECK(same(ExpectedHinge::first(m, s), {m > 0 ? m : 0.0, m > 0 ? 1.0 : (m < 0 ? 0.0 : 0.5), 0.0}));
      const LossSecond second = ExpectedHinge::second(m, s);
      CHECK(second.mm == 0.0);
      CHECK(second.ms == 0.0);
      CHECK(second.ss == 0.0);
    }
  }
}

TEST_CASE("the smallest spread that counts gives finite derivatives") {
  const LossFirst first = ExpectedHinge::first(0.0, halosvm::smallest_spread);
  CHECK(oracle::relative_error(first.slope_s2, 0.39894228040143267794e300L) < 1e-15);
  CHECK(oracle::relative_error(first.value, 0.39894228040143267794e-300L) < 1e-15);
  CHECK(first.slope_m == 0.5);
}

TEST_CASE("ratios beyond the tail give the hinge exactly, also where m / s overflows") {
  for (const double s : {1e-300, 1e-200, 1e-3, 1.0, 1e150}) {
    for (const double m : {1e3, 1e100, 1e150, 1e300, std::numeric_limits<double>::max()}) {
      if (m / s < 100.0) continue;
      CAPTURE(m);
      CAPTURE(s);
      CHECK(same(ExpectedHinge::first(m, s), {m, 1.0, 0.0}));
      CHECK(same(ExpectedHinge::first(-m, s), {0.0, 0.0, 0.0}));
      for (const double signed_m : {m, -m}) {
        const LossSecond second = ExpectedHinge::second(signed_m, s);
        CHECK(second.mm == 0.0);
        CHECK(second.ms == 0.0);
        CHECK(second.ss == 0.0);
      }
    }
  }
}

TEST_CASE("hinge is max(0, m) with slope 1/2 at the kink, whatever the spread") {
  for (const double s : {0.0, 1.0, 1e150}) {
    CHECK(same(Hinge::first(-2.0, s), {0.0, 0.0, 0.0}));
    CHECK(same(Hinge::first(0.0, s), {0.0, 0.5, 0.0}));
    CHECK(same(Hinge::first(3.0, s), {3.0, 1.0, 0.0}));
    CHECK(Hinge::second(0.0, s).mm == 0.0);
    CHECK(Hinge::second(1.0, s).ms == 0.0);
    CHECK(Hinge::second(1.0, s).ss == 0.0);
  }
}

TEST_CASE("the best case is the hinge of m - s with slope 1/2 at the kink, and falls as the spread grows") {
  CHECK(same(BestCase::first(3.0, 2.0), {1.0, 1.0, -0.5}));
  CHECK(same(BestCase::first(2.0, 2.0), {0.0, 0.5, -0.25}));
  CHECK(same(BestCase::first(1.0, 2.0), {0.0, 0.0, -0.0}));
  for (const double s : {0.0, 1e-320, 9.9e-301}) {
    for (const double m : {-2.5, 0.0, 2.5}) CHECK(same(BestCase::first(m, s), Hinge::first(m, 0.0)));
  }
  CHECK(BestCase::first(1.0, halosvm::smallest_spread).slope_s2 == -1.0 / halosvm::smallest_spread);
  CHECK(BestCase::second(2.0, 2.0).mm == 0.0);
}

namespace {

/// -log E sigma(-(m + s Z)) and its derivatives, as moments of the input given the label: the trapezoidal rule around
/// the likeliest one, of an integrand that falls as exp(-z^2 / 2) at least. Its step is a quarter of what sigma turns
/// over.
struct Marginal {
  real value, slope_m, slope_s2, mm, ms, ss;
};

Marginal marginal_by_quadrature(real m, real s) {
  const auto sigma = [](real u) { return 1 / (1 + std::exp(-u)); };
  real low = -s;
  real high = 0;
  for (int i = 0; i < 70; ++i) {
    const real z = (low + high) / 2;
    (z + s * sigma(m + s * z) > 0 ? high : low) = z;
  }
  const real top = -std::log1p(std::exp(m + s * low)) - low * low / 2;
  const real step = std::min(real{1} / 4, 1 / (4 * s));
  const int n = static_cast<int>(10 / step);
  real sum[6] = {};
  real slopes[2] = {};
  real bends[3] = {};
  for (int i = -n; i <= n; ++i) {
    const real z = low + i * step;
    const real p = sigma(m + s * z);
    const real mass = std::exp(-std::log1p(std::exp(m + s * z)) - z * z / 2 - top);
    sum[0] += mass;
    sum[1] += mass * p * (1 - 2 * p);
    slopes[0] += mass * p;
    slopes[1] += mass * p * z;
    for (int k = 0; k < 3; ++k) bends[k] += mass * p * (1 - 2 * p) * (k == 0 ? 1 : k == 1 ? z : z * z);
  }
  const real a = slopes[0] / sum[0];
  const real b = slopes[1] / sum[0];
  return {std::log(8 * std::atan(real{1})) / 2 - top - std::log(step * sum[0]),
          a,
          sum[1] / sum[0],
          bends[0] / sum[0] + a * a,
          bends[1] / sum[0] + a * b,
          bends[2] / sum[0] + b * b};
}

}  // namespace

TEST_CASE("the marginal logistic loss and its derivatives equal quadrature") {
  if (!oracle::extended) return;
  oracle::Random random(5);
  double worst = 0.0;
  for (int i = 0; i < 1500; ++i) {
    const double s = std::pow(10.0, random.uniform(-3.0, 1.3));
    const double m = i % 2 == 0 ? random.uniform(-2.0, 2.0) : random.uniform(-3.0, 15.0 + 0.7 * s * s);
    const Marginal want = marginal_by_quadrature(m, s);
    const LossFirst first = MarginalLogistic::first(m, s);
    const LossSecond second = MarginalLogistic::second(m, s);
    const real got[] = {first.value - want.value, first.slope_m - want.slope_m, first.slope_s2 - want.slope_s2,
                        second.mm - want.mm,      second.ms - want.ms,          second.ss - want.ss};
    const real bend = 1 + std::abs(want.slope_s2) * (1 + s * s);  // of which second derivatives are differences
    const real size[] = {want.value, want.slope_m, std::abs(want.slope_s2) + want.slope_m, 1.0, bend, bend};
    for (int k = 0; k < 6; ++k) worst = std::max(worst, static_cast<double>(std::abs(got[k]) / size[k]));
  }
  CHECK(worst < 1e-12);
}

TEST_CASE("the marginal logistic loss is finite wherever (m, s) is, and the logistic loss without spread") {
  for (const double s : {0.0, 1e-320, 1e-8, 1.0, 1e8, 1e25, 1e200, std::numeric_limits<double>::max()}) {
    for (const double size : {0.0, 1e-310, 1.0, 50.0, 1e3, 1e150, std::numeric_limits<double>::max()}) {
      for (const double m : {size, -size}) {
        CAPTURE(m);
        CAPTURE(s);
        const LossFirst first = MarginalLogistic::first(m, s);
        const LossSecond second = MarginalLogistic::second(m, s);
        for (const double each : {first.value, first.slope_m, first.slope_s2, second.mm, second.ms, second.ss}) {
          CHECK(std::isfinite(each));
        }
        CHECK(first.value >= 0.0);
        CHECK(first.slope_m >= 0.0);
        CHECK(first.slope_m <= 1.0);
        CHECK(second.mm >= 0.0);
        if (s > 1e-300 || std::abs(m) > 700.0) continue;
        const double logistic = m > 0.0 ? m + std::log1p(std::exp(-m)) : std::log1p(std::exp(m));
        CHECK(oracle::relative_error(first.value, logistic) < 1e-14);
      }
    }
  }
}

TEST_CASE("a loss that is not convex names a convex one, without spread for rounds, and no other loss does") {
  for (const std::string& name : halosvm::loss_names()) {
    CAPTURE(name);
    const halosvm::LossTraits& traits = halosvm::make_loss(name)->traits();
    CHECK(traits.convex() == (name != BestCase::name && name != MarginalLogistic::name));
    if (traits.convex()) continue;
    const halosvm::LossTraits& above = halosvm::make_loss(traits.majorant)->traits();
    CHECK(above.convex());
    CHECK(above.margin == traits.margin);
    CHECK(above.uses_spread == (traits.shift == 0.0));
  }
}

TEST_CASE("the dual of a loss without spread has the loss as its largest value, and every hinge has one") {
  int known = 0;
  for (const std::string& name : halosvm::loss_names()) {
    CAPTURE(name);
    const auto loss = halosvm::make_loss(name);
    const halosvm::CertainDual dual = loss->traits().certain;
    CHECK(dual.end >= 0.0);
    if (dual.end == 0.0) continue;
    ++known;
    for (double m = -3.0; m <= 3.0; m += 0.03125) {
      double largest = 0.0;  // on a grid that holds the best theta, or one next to it
      for (double theta = 0.0; theta <= std::min(dual.end, 8.0); theta += 0.03125) {
        largest = std::max(largest, theta * m - 0.5 * dual.bend * theta * theta);
      }
      const double s = 0.0;
      double value = 0.0;
      double slope = 0.0;
      double other = 0.0;
      loss->first(1, &m, &s, &value, &slope, &other);
      CHECK(std::abs(value - largest) < 1e-14);
    }
  }
  CHECK(known == 5);
}

TEST_CASE_TEMPLATE("a block equals its examples one by one, for every remainder of the vector width", Scalar,
                   ExpectedHinge, Hinge, BestCase, MarginalLogistic) {
  constexpr double canary = 12345.0;
  const auto loss = halosvm::make_loss(Scalar::name);
  oracle::Random random(4);
  for (Index count = 0; count <= 17; ++count) {
    CAPTURE(count);
    const auto size = static_cast<std::size_t>(count);
    std::vector<double> m(size);
    std::vector<double> s(size);
    for (std::size_t i = 0; i < size; ++i) {
      s[i] = i % 5 == 3 ? 0.0 : std::pow(10.0, random.uniform(-5.0, 5.0));
      m[i] = i % 7 == 6 ? 0.0 : random.uniform(-45.0, 45.0) * (s[i] > 0.0 ? s[i] : 1.0);
    }
    std::vector<std::vector<double>> out(6, std::vector<double>(size + 1, canary));
    loss->first(count, m.data(), s.data(), out[0].data(), out[1].data(), out[2].data());
    loss->second(count, m.data(), s.data(), out[3].data(), out[4].data(), out[5].data());
    Worst worst;
    for (std::size_t i = 0; i < size; ++i) {
      const LossFirst first = Scalar::first(m[i], s[i]);
      const LossSecond second = Scalar::second(m[i], s[i]);
      const double want[] = {first.value, first.slope_m, first.slope_s2, second.mm, second.ms, second.ss};
      for (std::size_t k = 0; k < 6; ++k) worst.add(out[k][i], want[k], m[i], s[i], k);
    }
    INFO(worst.where());
    CHECK(worst.error() < 1e-15);
    for (const auto& array : out) CHECK(array[size] == canary);
  }
}

TEST_CASE("losses are found by name, know it, and an unknown name is answered with the list") {
  const std::vector<std::string> names = halosvm::loss_names();
  CHECK(names.size() == 8);
  for (const std::string& name : names) CHECK(halosvm::make_loss(name)->name() == name);
  CHECK(halosvm::make_loss("expected_hinge")->uses_spread());
  CHECK(!halosvm::make_loss("hinge")->uses_spread());
  CHECK(oracle::error_of([] { halosvm::make_loss("square"); }) ==
        "loss is 'square'; it must be one of expected_hinge, hinge, expected_squared_hinge, expected_huber_hinge, "
        "expected_logistic, marginal_logistic, worst_case, best_case");
}
