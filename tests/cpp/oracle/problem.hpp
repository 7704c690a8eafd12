/// \file
/// A small training problem, as the library sees it and as the dense oracle does.
#pragma once

#include "halosvm/halosvm.hpp"
#include "oracle/covariance_batches.hpp"
#include "oracle/dense_objective.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace oracle {

struct Problem {
  Matrix X;
  Batch batch;
  std::vector<std::int16_t> codes;
  std::vector<double> weights;  ///< empty for equal weights
  Index n_problems = 1;
  double lam = 0.1;
  std::string loss = "expected_hinge";
  bool fit_intercept = true;

  /// \p batch with random means and labels; with several problems as many classes.
  Problem(Batch covariances, Index problems, std::uint64_t seed) : batch(std::move(covariances)), n_problems(problems) {
    Random random(seed);
    const Index n = batch.covariances->n_samples();
    X = random.normal_matrix(n, batch.covariances->n_features());
    codes = random.codes(n, problems == 1 ? 2 : problems);
    for (Index i = 0; i < n; ++i) X(i, codes[static_cast<std::size_t>(i)] % X.cols()) += 2.0;  // some signal
  }

  Index n() const { return X.rows(); }
  Index d() const { return X.cols(); }

  void add_random_weights(std::uint64_t seed) {
    Random random(seed);
    weights.clear();
    for (Index i = 0; i < n(); ++i) weights.push_back(i % 6 == 5 ? 0.0 : random.uniform(0.2, 3.0));
  }

  /// Refers to this object's arrays.
  halosvm::LocalObjective objective(int n_threads = 1) const {
    halosvm::Execution execution;
    execution.n_threads = n_threads;
    return objective(execution);
  }
  halosvm::LocalObjective objective(const halosvm::Execution& execution) const {
    return {halosvm::Gaussians(ArrayView(X.data(), n(), d()), batch.covariances),
            {codes.data(), n_problems},
            weights.empty() ? nullptr : weights.data(),
            lam,
            halosvm::make_loss(loss),
            fit_intercept,
            execution};
  }

  /// Problem k for the dense oracle.
  DenseObjective dense(Index k = 0) const {
    DenseObjective out;
    out.X = X;
    out.S = batch.dense;
    out.y.resize(n());
    out.c.resize(n());
    for (Index i = 0; i < n(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      out.y(i) = codes[at] == (n_problems == 1 ? 1 : k) ? 1.0 : -1.0;
      out.c(i) = weights.empty() ? 1.0 : weights[at];
    }
    out.c /= out.c.sum();
    out.lam = lam;
    out.fit_intercept = fit_intercept;
    out.hinge = loss == "hinge";
    return out;
  }
};

/// (w, b) as the dense oracle takes it.
inline RealVector joined(const halosvm::ConstVectorRef& w, double b) {
  RealVector u(w.size() + 1);
  u << w.cast<real>(), real{b};
  return u;
}

/// A random point or direction: coefficients and intercepts.
struct Point {
  Matrix W;
  Vector b;
  Point(Index problems, Index features, Random& random)
      : W(random.normal_matrix(problems, features)), b(random.normal_vector(problems)) {}
};

/// A random point where every loss is smooth far enough for differences: hypot(m, s) > 0.03.
inline Point smooth_point(const Problem& problem, Random& random) {
  while (true) {
    Point at(problem.n_problems, problem.d(), random);
    bool smooth = true;
    for (Index k = 0; k < problem.n_problems; ++k) {
      const DenseObjective dense = problem.dense(k);
      const RealVector u = joined(at.W.row(k).transpose(), at.b(k));
      for (Index i = 0; i < problem.n(); ++i)
        smooth = smooth && std::hypot(dense.margin(i, u), dense.spread(i, u)) > 0.03L;
    }
    if (smooth) return at;
  }
}

}  // namespace oracle
