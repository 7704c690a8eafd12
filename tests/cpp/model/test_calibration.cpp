#include "halosvm/model/calibration.hpp"
#include "oracle/accuracy.hpp"
#include "oracle/errors.hpp"
#include "oracle/no_numbers.hpp"
#include "oracle/random.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

using halosvm::fit_platt;
using halosvm::Index;
using halosvm::PlattScaling;
using halosvm::Vector;
using oracle::error_of;
using oracle::infinity;
using oracle::not_a_number;
using oracle::real;

namespace {

struct Data {
  Vector decision;
  std::vector<std::uint8_t> positive;
  std::vector<double> weights;

  void add(double f, bool is_positive, double weight) {
    decision.conservativeResize(decision.size() + 1);
    decision(decision.size() - 1) = f;
    positive.push_back(is_positive ? 1 : 0);
    weights.push_back(weight);
  }
  PlattScaling fit() const { return fit_platt(decision, positive.data(), weights.data()); }
  double total(bool of_positive) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < weights.size(); ++i) sum += (positive[i] != 0) == of_positive ? weights[i] : 0.0;
    return sum;
  }
};

/// Noisy data: P(positive) rises with f.
Data noisy(Index n, double scale, double offset, std::uint64_t seed) {
  oracle::Random random(seed);
  Data data;
  for (Index i = 0; i < n; ++i) {
    const double f = random.normal();
    const bool is_positive = i < 2 ? i == 0 : random.uniform() < 1.0 / (1.0 + std::exp(-2.0 * f + 0.5));
    data.add(scale * f + offset, is_positive, i % 3 == 0 ? 2.0 : random.uniform(0.0, 1.5));
  }
  return data;
}

/// The loss of spec E written down directly.
real loss(const Data& data, real slope, real offset) {
  const real high = (real{data.total(true)} + 1) / (real{data.total(true)} + 2);
  const real low = 1 / (real{data.total(false)} + 2);
  real sum = 0;
  for (Index i = 0; i < data.decision.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const real u = slope * data.decision(i) + offset;
    const real log_p = u > 0 ? -u - std::log1p(std::exp(-u)) : -std::log1p(std::exp(u));
    const real log_q = u > 0 ? -std::log1p(std::exp(-u)) : u - std::log1p(std::exp(u));
    const real t = data.positive[at] != 0 ? high : low;
    sum -= data.weights[at] * (t * log_p + (1 - t) * log_q);
  }
  return sum;
}

/// The minimum of a convex function on [low, high] by golden sections.
template <class Function>
real minimise(const Function& f, real low, real high, real* where) {
  const real ratio = (std::sqrt(real{5}) - 1) / 2;
  real a = high - ratio * (high - low);
  real b = low + ratio * (high - low);
  real at_a = f(a);
  real at_b = f(b);
  for (int i = 0; i < 90; ++i) {
    if (at_a < at_b) {
      high = b;
      b = a;
      at_b = at_a;
      a = high - ratio * (high - low);
      at_a = f(a);
    } else {
      low = a;
      a = b;
      at_a = at_b;
      b = low + ratio * (high - low);
      at_b = f(b);
    }
  }
  *where = (low + high) / 2;
  return f(*where);
}

/// The minimum over slope and offset by two nested searches; the offset is searched about that of the middle of the
/// data, where it does not depend on the slope's size.
real brute_force_minimum(const Data& data, real* slope) {
  const real middle = data.decision.mean();
  const real width = (data.decision.array() - data.decision.mean()).abs().maxCoeff();
  return minimise(
      [&](real a) {
        real ignored = 0;
        return minimise([&](real b) { return loss(data, a, b - a * middle); }, -40, 40, &ignored);
      },
      -40 / width, 40 / width, slope);
}

/// E 1 / (1 + exp(A (mean + std Z) + B)) by the trapezoidal rule.
double expected_by_quadrature(const PlattScaling& platt, double mean, double std) {
  constexpr double step = 1.0 / 64.0;
  double sum = 0.0;
  for (int i = -640; i <= 640; ++i) {
    const double z = step * i;
    sum += step * std::exp(-0.5 * z * z) * 0.3989422804014327 /
           (1.0 + std::exp(platt.slope * (mean + std * z) + platt.offset));
  }
  return sum;
}

}  // namespace

TEST_CASE("the fit is the optimum that nested searches find") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Data data = noisy(60, 1.0, 0.0, seed);
    const PlattScaling platt = data.fit();
    real slope = 0;
    const real best = brute_force_minimum(data, &slope);
    CHECK(loss(data, platt.slope, platt.offset) - best < 1e-9L);
    CHECK(std::abs(static_cast<double>(platt.slope - slope)) < 1e-4);
    CHECK(platt.slope < 0.0);
  }
}

TEST_CASE("the fit is optimal whatever the scale and the offset of the decision values") {
  for (const double scale : {1e-6, 1e-3, 1.0, 1e3, 1e6}) {
    for (const double offset : {0.0, 10.0, 1000.0}) {
      CAPTURE(scale);
      CAPTURE(offset);
      const Data data = noisy(60, scale, offset * scale, 4);
      const PlattScaling platt = data.fit();
      real ignored = 0;
      CHECK(loss(data, platt.slope, platt.offset) - brute_force_minimum(data, &ignored) < 1e-6L);
    }
  }
}

TEST_CASE("equal weights may be left out, and integer weights are duplicates") {
  Data once = noisy(40, 1.0, 0.0, 5);
  Data duplicated;
  for (Index i = 0; i < 40; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const int copies = static_cast<int>(i % 4);
    once.weights[at] = copies;
    for (int k = 0; k < copies; ++k) duplicated.add(once.decision(i), once.positive[at] != 0, 1.0);
  }
  const PlattScaling weighted = once.fit();
  const PlattScaling repeated = duplicated.fit();
  CHECK(std::abs(weighted.slope - repeated.slope) < 1e-10);
  CHECK(std::abs(weighted.offset - repeated.offset) < 1e-10);
  const PlattScaling unweighted = fit_platt(duplicated.decision, duplicated.positive.data(), nullptr);
  CHECK(unweighted.slope == repeated.slope);
  CHECK(unweighted.offset == repeated.offset);
}

TEST_CASE("decision values times a constant give the same probabilities") {
  const Data data = noisy(50, 1.0, 0.0, 6);
  Data scaled = data;
  scaled.decision *= 8.0;
  const PlattScaling a = data.fit();
  const PlattScaling b = scaled.fit();
  for (const double f : {-2.0, 0.0, 0.7}) CHECK(std::abs(a.probability(f) - b.probability(8.0 * f)) < 1e-6);
}

TEST_CASE("separable data stay finite and tend to the smoothed class frequencies") {
  Data data;
  for (int i = 0; i < 6; ++i) data.add(5.0 + i, true, 1.0);
  for (int i = 0; i < 3; ++i) data.add(-5.0 - i, false, 1.0);
  const PlattScaling platt = data.fit();
  CHECK(std::isfinite(platt.slope));
  CHECK(std::isfinite(platt.offset));
  // With two distinct values the fit meets both targets exactly.
  Data two;
  for (int i = 0; i < 6; ++i) two.add(1.0, true, 1.0);
  for (int i = 0; i < 3; ++i) two.add(-1.0, false, 1.0);
  CHECK(std::abs(two.fit().probability(1.0) - 7.0 / 8.0) < 1e-5);
  CHECK(std::abs(two.fit().probability(-1.0) - 1.0 / 5.0) < 1e-5);
}

TEST_CASE("one class gives a constant probability, also when the other has no weight") {
  Data data;
  data.add(1.0, true, 1.5);
  data.add(-4.0, true, 2.5);
  data.add(3.0, false, 0.0);
  PlattScaling platt = data.fit();
  CHECK(platt.slope == 0.0);
  for (const double f : {-100.0, 0.0, 3.0}) CHECK(std::abs(platt.probability(f) - 5.0 / 6.0) < 1e-15);
  for (auto& positive : data.positive) positive = positive != 0 ? 0 : 1;
  platt = data.fit();
  CHECK(platt.slope == 0.0);
  CHECK(std::abs(platt.probability(7.0) - 1.0 / 6.0) < 1e-15);
}

TEST_CASE("decision values that are all equal give the probability that fits them all") {
  for (const double f : {0.0, 1.0, -1e3, 1e6}) {
    CAPTURE(f);
    Data data;
    for (int i = 0; i < 10; ++i) data.add(f, i < 7, 1.0);
    // The best constant is the mean of the targets: (7 * 8/9 + 3 * 1/5) / 10.
    CHECK(std::abs(data.fit().probability(f) - (7.0 * 8.0 / 9.0 + 3.0 / 5.0) / 10.0) < 1e-5);
  }
}

TEST_CASE("probabilities do not overflow") {
  CHECK(PlattScaling{1.0, 0.0}.probability(2000.0) == 0.0);
  CHECK(PlattScaling{1.0, 0.0}.probability(-2000.0) == 1.0);
  CHECK(PlattScaling{-1e200, 3.0}.probability(1e50) == 1.0);
  oracle::Worst worst;
  for (const double u : {-700.0, -30.0, -1.0, 0.0, 1.0, 30.0, 700.0}) {
    worst.add(PlattScaling{1.0, 0.0}.probability(u), 1 / (1 + std::exp(real{u})), u);
  }
  INFO(worst.where());
  CHECK(worst.error() < 1e-15);
}

TEST_CASE("a fit to huge decision values is finite") {
  Data data;
  oracle::Random random(7);
  for (int i = 0; i < 30; ++i) data.add(2000.0 * random.normal(), random.uniform() < 0.5, 1.0);
  const PlattScaling platt = data.fit();
  CHECK(std::isfinite(platt.slope));
  CHECK(std::isfinite(platt.offset));
}

TEST_CASE("the expected probability is within 1e-4 of quadrature, and exact without errors") {
  double worst = 0.0;
  for (const double slope : {-3.0, -0.5, 1.0}) {
    for (const double offset : {-2.0, 0.0, 1.0}) {
      for (double mean = -10.0; mean <= 10.0; mean += 0.5) {
        for (const double std : {0.0, 0.1, 0.5, 1.0, 2.0, 5.0}) {
          const PlattScaling platt{slope, offset};
          const double got = platt.expected_probability(mean, std);
          if (std == 0.0) CHECK(std::abs(got - platt.probability(mean)) < 1e-15);
          worst = std::max(worst, std::abs(got - expected_by_quadrature(platt, mean, std)));
        }
      }
    }
  }
  CHECK(worst < 1e-4);
  CHECK(worst > 1e-6);  // otherwise the quadrature repeats the approximation
}

TEST_CASE("values and weights that make no sense are named") {
  Data data = noisy(5, 1.0, 0.0, 8);
  data.decision(3) = not_a_number;
  CHECK(error_of([&] { data.fit(); }) == "decision row 3 is nan; it must be finite");
  data.decision(3) = infinity;
  CHECK(error_of([&] { data.fit(); }) == "decision row 3 is inf; it must be finite");
  data.decision(3) = 0.0;
  for (const double weight : {-1.0, not_a_number, infinity}) {
    data.weights[2] = weight;
    CHECK(error_of([&] { data.fit(); }).find("weights row 2 is ") == 0);
  }
  data.weights.assign(5, 0.0);
  CHECK(error_of([&] { data.fit(); }) == "weights must have a positive sum");
  CHECK(error_of([] { fit_platt(Vector(), nullptr, nullptr); }) == "weights must have a positive sum");
}
