#include "halosvm/core/normal.hpp"
#include "oracle/normal_quadrature.hpp"
#include "oracle/random.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using halosvm::normal_tail;
using halosvm::NormalTail;
using oracle::real;
using oracle::relative_error;
using oracle::Worst;

namespace {

/// What the quadrature itself resolves where long double is no wider than double: phi magnifies by t^2.
constexpr double tolerance = oracle::extended ? 5e-15 : 5e-13;

struct Golden {
  double t, density, upper, hinge, squared_hinge;
};

// mpmath with 400 digits: phi(t), erfc(t / sqrt 2) / 2 and their combinations, printed to 20 digits.
constexpr Golden golden[] = {
    {0.0, 0.39894228040143267794, 0.5, 0.39894228040143267794, 0.5},
    {0.0009765625, 0.39894209017097475873, 0.49961040799121945899, 0.39845418938192083347, 0.49922129257190117693},
    {0.25, 0.38666811680284920694, 0.40129367431707627576, 0.286344698223580138, 0.32970749976118124126},
    {1.0, 0.2419707245191433498, 0.15865525393145705141, 0.083315470587686298383, 0.075339783343770753032},
    {1.8125, 0.077187584439710714867, 0.034954486968234739425, 0.01383257680978524966, 0.0098829415004989744168},
    {2.75, 0.0090935625015910527701, 0.0029797632350545567543, 0.00089921360519102169575, 0.00050692582077924709099},
    {4.0, 0.00013383022576488535177, 0.000031671241833119921254, 7.145258432405666759e-6, 3.0902081034972542178e-6},
    {6.5, 2.6695566147628519167e-10, 4.0160005838591178083e-11, 5.9156235254425341277e-12, 1.7084529232147062531e-12},
    {9.0, 1.0279773571668914795e-18, 1.1285884059538406477e-19, 1.2247791808434896568e-20, 2.6287143194699956594e-21},
    {13.25, 3.0060595260997454028e-39, 2.2560163396857890795e-40, 1.6837876016074872443e-41, 2.4997767555868480826e-42},
    {20.0, 5.5209483621597631896e-88, 2.7536241186062336951e-89, 1.3700124947295799431e-90, 1.3599129147073808778e-91},
    {28.5, 1.6713353651300799206e-177, 5.8571412538063375481e-179, 2.0501077952737193411e-180,
     1.4334037276237426106e-181},
    {37.5, 1.7282337322841052208e-306, 4.6053530095819548438e-308, 1.2263536908721543153e-309,
     6.5266688113761614364e-311},
};

void add(Worst& worst, const NormalTail& got, const oracle::Tail& want, double t) {
  worst.add(got.density, want.density, t);
  worst.add(got.upper, want.upper, t);
  worst.add(got.hinge, want.hinge, t);
  worst.add(got.squared_hinge, want.squared_hinge, t);
}

}  // namespace

TEST_CASE("tail values equal mpmath's") {
  Worst worst;
  for (const Golden& g : golden) {
    add(worst, normal_tail(g.t), {g.density, g.upper, g.hinge, g.squared_hinge}, g.t);
  }
  INFO(worst.where());
  CHECK(worst.error() < 5e-15);
}

TEST_CASE("tail values equal quadrature on all of [0, 37.5]") {
  Worst worst;
  oracle::Random random(1);
  for (int i = 0; i <= 3000; ++i) {
    const double t = 37.5 * (i % 2 == 0 ? i / 3000.0 : random.uniform());
    add(worst, normal_tail(t), oracle::tail_by_quadrature(t), t);
  }
  for (const double t : {1e-300, 1e-20, 1e-9, 1e-3}) add(worst, normal_tail(t), oracle::tail_by_quadrature(t), t);
  INFO(worst.where());
  CHECK(worst.error() < tolerance);
}

TEST_CASE("the correction to the argument counts") {
  if (!oracle::extended) return;  // t + dt is not a double
  Worst worst;
  oracle::Random random(2);
  for (int i = 0; i < 500; ++i) {
    const double t = random.uniform(0.0, 37.4);
    const double dt = t * random.uniform(-1.0, 1.0) * 0x1p-52;
    const oracle::Tail want = oracle::tail_by_quadrature(real{t} + real{dt});
    const NormalTail got = normal_tail(t, dt);
    worst.add(got.density, want.density, t, dt);
    worst.add(got.upper, want.upper, t, dt);
    worst.add(got.hinge, want.hinge, t, dt);
  }
  INFO(worst.where());
  CHECK(worst.error() < tolerance);
}

TEST_CASE("tail values beyond the end are zero") {
  for (const double t : {37.500001, 40.0, 1e10, 1e300, std::numeric_limits<double>::infinity()}) {
    CAPTURE(t);
    const NormalTail tail = normal_tail(t);
    CHECK(tail.density == 0.0);
    CHECK(tail.upper == 0.0);
    CHECK(tail.hinge == 0.0);
    CHECK(tail.squared_hinge == 0.0);
  }
}

TEST_CASE("density and distribution function are relatively accurate on both sides") {
  Worst worst;
  for (const Golden& g : golden) {
    worst.add(halosvm::normal_pdf(g.t), g.density, g.t);
    worst.add(halosvm::normal_pdf(-g.t), g.density, g.t);
    worst.add(halosvm::normal_cdf(-g.t), g.upper, g.t);
    worst.add(halosvm::normal_cdf(g.t), 1 - real{g.upper}, g.t);
  }
  INFO(worst.where());
  CHECK(worst.error() < 5e-15);
}

TEST_CASE("the upper quantile inverts the upper tail") {
  oracle::Random random(6);
  CHECK(halosvm::normal_upper_quantile(0.5) == 0.0);
  double worst = 0.0;
  for (int i = 0; i < 2000; ++i) {
    const double p = i % 2 == 0 ? 0.5 * std::pow(10.0, -300.0 * random.uniform())
                                : 0.5 * (1.0 - std::pow(10.0, -15.0 * random.uniform()));
    const double t = halosvm::normal_upper_quantile(p);
    const oracle::Tail tail = oracle::tail_by_quadrature(t);
    const real error = (tail.upper - real{p}) / tail.density;  // of t, by the inverse function's slope
    // p itself is known to half a unit in its last place only, which is worth p 1e-16 / phi(t) in t.
    worst = std::max(worst, static_cast<double>(std::abs(error) / (t + p / tail.density)));
  }
  CHECK(worst < 1e-15);
}

TEST_CASE("exp_minus is exp over its whole range") {
  Worst worst;
  oracle::Random random(3);
  for (int i = 0; i < 20000; ++i) {
    const double a = i == 0 ? 0.0 : (i == 1 ? 704.0 : random.uniform(0.0, 704.0));
    const double b = random.uniform(-1e-3, 1e-3);
    worst.add(halosvm::detail::exp_minus(a, b), std::exp(-(real{a} + real{b})), a, b);
  }
  INFO(worst.where());
  CHECK(worst.error() < (oracle::extended ? 1e-15 : 2e-13));
}

TEST_CASE("the upper half of a number has few digits and lies within 2^-25 of it") {
  oracle::Random random(4);
  for (int i = 0; i < 1000; ++i) {
    const double x = random.normal() * std::pow(10.0, random.uniform(-100.0, 100.0));
    const double upper = halosvm::detail::upper_half(x);
    CHECK(std::fma(upper, upper, -upper * upper) == 0.0);  // its square is exact
    CHECK(std::abs(x - upper) <= 0x1p-25 * std::abs(x));
  }
}

TEST_CASE("exact_ratio carries the quotient to 100 bits") {
  // A fused multiply-add gives the exact remainder m - value s; the error term must account for all of it.
  oracle::Random random(5);
  double worst = 0.0;
  for (int i = 0; i < 20000; ++i) {
    const double s = std::pow(10.0, random.uniform(-150.0, 150.0));
    const double m = s * random.uniform(-37.0, 37.0);
    const halosvm::Ratio z = halosvm::exact_ratio(m, s);
    const double remainder = std::fma(-z.value, s, m);
    worst = std::max(worst, std::abs(std::fma(-z.error, s, remainder)) / std::abs(m));
    CHECK(relative_error(z.inverse, 1 / real{s}) < 2.3e-16);
  }
  CHECK(worst < 0x1p-100);
}
