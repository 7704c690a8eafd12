/// \file
/// Stochastic gradient descent step by step in extended precision, for one problem with dense covariances.
#pragma once

#include "halosvm/solver/sgd.hpp"
#include "oracle/problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace oracle {

using halosvm::Averaging;
using halosvm::SgdSettings;

/// The row of a draw, written from the published SplitMix64: state seed + gamma, mixed once to a key, and then the
/// (draw + 1)-th state of a generator that starts at the key.
inline Index row_of_draw(std::uint64_t seed, std::uint64_t draw, Index n) {
  const auto mixed = [](std::uint64_t z) {
    z ^= z >> 30U;
    z *= 0xBF58476D1CE4E5B9ULL;
    z ^= z >> 27U;
    z *= 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  };
  constexpr std::uint64_t gamma = 0x9E3779B97F4A7C15ULL;
  std::uint64_t state = mixed(seed + gamma);
  state += (draw + 1) * gamma;
  return static_cast<Index>(
      std::floor(std::ldexp(static_cast<double>(mixed(state) >> 11U), -53) * static_cast<double>(n)));
}

/// Spec C.3 step by step in extended precision: the walk's model before any exact intercept.
inline RealVector walk(const Problem& problem, Index k, const SgdSettings& settings, RealVector u) {
  const DenseObjective f = problem.dense(k);
  const Index n = problem.n();
  const Index d = problem.d();
  const bool averaged = settings.averaging == Averaging::weighted;
  const auto x = [&](Index i) -> RealVector { return problem.X.row(i).transpose().cast<real>(); };
  RealVector centre = RealVector::Zero(d);
  for (Index i = 0; i < n && averaged && problem.fit_intercept; ++i) centre += real{f.c(i)} * x(i);
  real radius2 = 0;
  for (Index i = 0; i < n; ++i) {
    const real trace = f.hinge ? 0 : real{f.S[static_cast<std::size_t>(i)].trace()};
    radius2 += real{f.c(i)} * ((x(i) - centre).squaredNorm() + 1 + trace);
  }
  const real lam = problem.lam;
  const real t0 = averaged ? radius2 / lam : 0;
  RealVector w = u.head(d);
  RealVector product(d);
  real beta = u(d) + w.dot(centre);
  RealVector w_mean = RealVector::Zero(d);
  real beta_mean = 0;
  const Index batch = std::min(settings.batch_size, n);
  for (Index t = 1; t <= settings.max_steps; ++t) {
    u << w, beta - w.dot(centre);
    RealVector g = RealVector::Zero(d);
    real g_b = 0;
    for (Index j = 0; j < batch; ++j) {
      const bool all = batch == n;
      const Index i = all ? j : row_of_draw(settings.seed, static_cast<std::uint64_t>((t - 1) * batch + j), n);
      const real scale = real{f.c(i)} * (all ? 1 : static_cast<real>(n) / static_cast<real>(batch));
      const real m = f.margin(i, u);
      const real s = f.spread(i, u);
      const real slope = s > 0 ? DenseObjective::cdf(m / s) : (m > 0 ? real{1} : (m < 0 ? real{0} : real{1} / 2));
      const real a = -real{f.y(i)} * scale * slope;
      g += a * (x(i) - centre);
      g_b += a;
      if (s > 0 && !f.hinge) {
        f.multiply(i, w, product);
        g += scale * DenseObjective::density(m / s) / s * product;
      }
    }
    const real eta = 1 / (lam * (static_cast<real>(t) + t0));
    w -= eta * (lam * w + g);
    if (problem.fit_intercept) beta -= eta * g_b;
    const real norm = w.norm();
    if (norm * std::sqrt(lam) > 1) w /= norm * std::sqrt(lam);
    w_mean += 2 / static_cast<real>(t + 1) * (w - w_mean);
    beta_mean += 2 / static_cast<real>(t + 1) * (beta - beta_mean);
  }
  if (averaged) {
    u << w_mean, beta_mean - w_mean.dot(centre);
  } else {
    u << w, beta;
  }
  return u;
}

}  // namespace oracle
