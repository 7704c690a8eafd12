// The small training problem, compiled once.

#include "oracle/problem.hpp"

#include <cmath>
#include <utility>

namespace oracle {

Problem::Problem(Batch covariances, Index problems, std::uint64_t seed)
    : batch(std::move(covariances)), n_problems(problems) {
  Random random(seed);
  const Index n = batch.covariances->n_samples();
  X = random.normal_matrix(n, batch.covariances->n_features());
  codes = random.codes(n, problems == 1 ? 2 : problems);
  for (Index i = 0; i < n; ++i) X(i, codes[static_cast<std::size_t>(i)] % X.cols()) += 2.0;  // some signal
}

void Problem::add_random_weights(std::uint64_t seed) {
  Random random(seed);
  weights.clear();
  for (Index i = 0; i < n(); ++i) weights.push_back(i % 6 == 5 ? 0.0 : random.uniform(0.2, 3.0));
}

halosvm::LocalObjective Problem::objective(int n_threads) const {
  halosvm::Execution execution;
  execution.n_threads = n_threads;
  return objective(execution);
}

halosvm::LocalObjective Problem::objective(const halosvm::Execution& execution) const {
  return {halosvm::Gaussians(ArrayView(X.data(), n(), d()), batch.covariances),
          {codes.data(), n_problems},
          weights.empty() ? nullptr : weights.data(),
          lam,
          halosvm::make_loss(loss),
          fit_intercept,
          execution};
}

DenseObjective Problem::dense(Index k) const {
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

RealVector joined(const halosvm::ConstVectorRef& w, double b) {
  RealVector u(w.size() + 1);
  u << w.cast<real>(), real{b};
  return u;
}

Point smooth_point(const Problem& problem, Random& random) {
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
