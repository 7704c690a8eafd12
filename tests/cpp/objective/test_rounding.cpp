// What rounding does to certificates: sums of products with twice the digits, data far from the origin, and spreads
// that cancel.

#include "../../../cpp/src/core/double_double.hpp"
#include "halosvm/gaussians/covariances/low_rank.hpp"
#include "halosvm/gaussians/covariances/zero.hpp"
#include "halosvm/solver/solver.hpp"
#include "halosvm/solver/solver.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

using namespace halosvm;

TEST_CASE("a double-double sum keeps what doubles cancel") {
  // (2^53 + 1) - 2^53 in steps that double arithmetic rounds away, and a product whose low half is all that is left.
  DoubleDouble sum(0x1p53);
  sum.add(1.0);
  sum.add(-0x1p53);
  CHECK(sum.value() == 1.0);

  const double a = 1.0 + 0x1p-30;
  DoubleDouble product(0.0);
  product.add_product(a, a);
  product.add(-1.0);
  product.add(-0x1p-29);
  CHECK(product.value() == 0x1p-60);

  DoubleDouble nested(0.0);
  nested.add_product(3.0, product);
  CHECK(nested.value() == 3.0 * 0x1p-60);
}

TEST_CASE("means that share a large offset have the model of the same means without it") {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  constexpr Index n = 40;
  constexpr Index d = 3;
  std::vector<double> near(n * d);
  std::vector<std::int16_t> codes(n);
  for (Index i = 0; i < n; ++i) {
    codes[static_cast<std::size_t>(i)] = static_cast<std::int16_t>(i % 2);
    for (Index j = 0; j < d; ++j) {
      near[static_cast<std::size_t>(i * d + j)] =
          std::round(64.0 * (normal(random) + (j == 0 ? 2.0 * (i % 2) : 0.0))) / 64;
    }
  }
  std::vector<double> far = near;
  for (double& x : far) x += 0x1p20;  // exactly
  const auto fit = [&](const std::vector<double>& means) {
    const LocalObjective objective({ArrayView(means.data(), n, d), std::make_shared<ZeroCovariances>(n, d)},
                                   {codes.data(), 1}, nullptr, 1e-3, make_loss("hinge"), true, {});
    return minimize(objective, LinearModel(1, d), BatchSettings{});
  };
  const Result here = fit(near);
  const Result there = fit(far);
  CHECK(converged(here.status));
  CHECK(converged(there.status));
  CHECK((here.model.coef - there.model.coef).norm() < 1e-3 * here.model.coef.norm());
  CHECK(std::abs(here.objective(0) - there.objective(0)) < 2e-6 * here.objective(0));
}

TEST_CASE("a few factors of ragged rank are not taken for certain examples") {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  constexpr Index n = 200;
  constexpr Index d = 2;
  constexpr Index uncertain = 12;  // fewer bytes of factors than examples
  std::vector<double> means(n * d);
  std::vector<std::int16_t> codes(n);
  for (Index i = 0; i < n; ++i) {
    codes[static_cast<std::size_t>(i)] = static_cast<std::int16_t>(i % 2);
    for (Index j = 0; j < d; ++j)
      means[static_cast<std::size_t>(i * d + j)] = normal(random) + static_cast<double>(i % 2);
  }
  std::vector<double> factors(uncertain * d);
  for (double& f : factors) f = 3.0 * normal(random);
  std::vector<Index> offsets(n + 1);
  for (Index i = 0; i <= n; ++i) offsets[static_cast<std::size_t>(i)] = std::min(i, uncertain);
  const auto covariances =
      std::make_shared<LowRankCovariances>(ArrayView(factors.data(), 1, uncertain * d), offsets.data(), n, d);
  CHECK_FALSE(covariances->certain());
  CHECK(covariances->row_bytes() > 0);
  const LocalObjective objective({ArrayView(means.data(), n, d), covariances}, {codes.data(), 1}, nullptr, 1e-2,
                                 make_loss("expected_hinge"), true, {});
  BatchSettings settings;
  settings.method = Method::interior_point;
  const Result interior = minimize(objective, LinearModel(1, d), settings);
  settings.method = Method::lbfgs;
  settings.max_iterations = 5000;
  const Result other = minimize(objective, LinearModel(1, d), settings);
  CHECK(converged(interior.status));
  CHECK(interior.objective(0) <= other.objective(0) * (1.0 + 1e-6));
}
