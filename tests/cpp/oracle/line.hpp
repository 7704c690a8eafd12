/// \file
/// Problems with one feature, so that scores and spreads can be chosen at will, and oracles of their intercepts.
#pragma once

#include "halosvm/halosvm.hpp"
#include "oracle/problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace oracle {

using halosvm::ArrayView;
using halosvm::Index;
using halosvm::LocalObjective;
using halosvm::Matrix;
using halosvm::Vector;

/// One example as the intercept sees it: for w = 1 and one feature, x = score and s = the standard deviation.
struct Example {
  double score;
  double std;
  bool positive;
  double weight;
};

/// A problem with one feature.
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

  double intercept(double guess = 0.0, const std::string& loss = "expected_hinge", int n_threads = 1) const {
    return intercept(guess, halosvm::make_loss(loss), n_threads);
  }

  double intercept(double guess, const std::shared_ptr<const halosvm::Loss>& loss, int n_threads = 1) const {
    const auto n = static_cast<Index>(scores_.size());
    halosvm::Execution execution;
    execution.n_threads = n_threads;
    const auto covariances = std::make_shared<halosvm::IsotropicCovariances>(ArrayView(stds_.data(), n, 1, true), 1);
    const LocalObjective objective(halosvm::Gaussians(ArrayView(scores_.data(), n, 1), covariances), {codes_.data(), 1},
                                   weights_.data(), 1.0, loss, true, execution);
    return objective.exact_intercept(Matrix::Ones(1, 1), Vector::Constant(1, guess))(0);
  }

  /// sum_i c_i L(m_i, s_i) at b.
  real loss(real b) const {
    real sum = 0;
    for (const Example& e : examples_) {
      const real m = 1 - (e.positive ? 1 : -1) * (e.score + b);
      const real s = e.std;
      const real z = s > 0 ? m / s : 0;
      using Dense = DenseObjective;
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
      sum += e.weight * y * (e.std > 0 ? DenseObjective::cdf(m / e.std) : (counts ? 1 : 0));
    }
    return sum / total_;
  }

  /// A minimiser, by bisection on the slope until no number lies between.
  real best() const {
    real low = -1;
    real high = 1;
    while (low > -1e30L && !(slope(low) > 0)) low *= 2;
    while (high < 1e30L && slope(high) > 0) high *= 2;
    for (int i = 0; i < 200; ++i) {  // few, but for 0
      const real middle = (low + high) / 2;
      if (!(low < middle && middle < high)) break;
      (slope(middle) > 0 ? low : high) = middle;
    }
    return loss(low) < loss(high) ? low : high;
  }

  /// Whether -d loss / db changes its sign where b is, as far as numbers resolve it: within some units in the last
  /// place of what a margin is computed from, and within what rounding does to the slopes that add up.
  template <class Scalar>
  bool at_root(double b) const {
    real size = 0;
    real decrease = 0;
    real place = std::max<real>(1, std::abs(b));
    for (const Example& e : examples_) {
      const real m = 1 - (e.positive ? 1 : -1) * (static_cast<real>(e.score) + b);
      size += e.weight * Scalar::slope(m);
      decrease += e.weight * Scalar::curvature(m);
      place = std::max<real>(place, std::abs(e.score));
    }
    const real off = 16 * std::numeric_limits<double>::epsilon() * place + 4e-15L * size / decrease;
    return slope_of<Scalar>(b - off) >= 0 && slope_of<Scalar>(b + off) <= 0;
  }

  template <class Scalar>
  real slope_of(real b) const {
    real sum = 0;
    for (const Example& e : examples_) {
      const real y = e.positive ? 1 : -1;
      sum += e.weight * y * Scalar::slope(1 - y * (e.score + b));
    }
    return sum;
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
inline double excess(const Line& line, double b) {
  const real best = line.best();
  return static_cast<double>((line.loss(b) - line.loss(best)) / std::max<real>(line.loss(best), std::abs(b - best)));
}

}  // namespace oracle
