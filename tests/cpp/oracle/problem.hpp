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
  Problem(Batch covariances, Index problems, std::uint64_t seed);

  Index n() const { return X.rows(); }
  Index d() const { return X.cols(); }

  void add_random_weights(std::uint64_t seed);

  /// Refers to this object's arrays.
  halosvm::LocalObjective objective(int n_threads = 1) const;
  halosvm::LocalObjective objective(const halosvm::Execution& execution) const;

  /// Problem k for the dense oracle.
  DenseObjective dense(Index k = 0) const;
};

/// (w, b) as the dense oracle takes it.
RealVector joined(const halosvm::ConstVectorRef& w, double b);

/// A random point or direction: coefficients and intercepts.
struct Point {
  Matrix W;
  Vector b;
  Point(Index problems, Index features, Random& random)
      : W(random.normal_matrix(problems, features)), b(random.normal_vector(problems)) {}
};

/// A random point where every loss is smooth far enough for differences: hypot(m, s) > 0.03.
Point smooth_point(const Problem& problem, Random& random);

}  // namespace oracle
