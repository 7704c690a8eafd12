/// \file
/// The objective of one binary problem written down directly, in extended precision and with a dense matrix for each
/// example, and a minimiser that knows nothing of the library's.
#pragma once

#include "oracle/accuracy.hpp"
#include "oracle/random.hpp"

#include <vector>

namespace oracle {

using RealVector = Eigen::Matrix<real, Eigen::Dynamic, 1>;
using RealMatrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// J(w, b) = lam/2 |w|^2 + sum_i c_i L(m_i, s_i) with L = m Phi(m/s) + s phi(m/s); s = 0 gives the hinge.
struct DenseObjective {
  Matrix X;
  std::vector<Matrix> S;
  Vector y;  ///< +1 or -1
  Vector c;  ///< weights, sum 1
  double lam = 1.0;
  bool fit_intercept = true;
  bool hinge = false;  ///< ignore the covariances
  real floor = 0;      ///< sqrt(s^2 + floor^2) in place of s

  Index size() const { return X.cols() + 1; }

  /// \param u (w, b).
  real value(const RealVector& u) const;

  /// Spec A.3, with Phi = 1/2 at the kink.
  RealVector gradient(const RealVector& u) const;

  /// Central differences of \ref value.
  RealVector differenced_gradient(const RealVector& u, real h = 1e-4L) const;

  /// Central differences of \ref gradient along v.
  RealVector differenced_hessian_vector(const RealVector& u, const RealVector& v, real h = 1e-4L) const;

  /// Spec A.4; an example without spread has no curvature.
  RealMatrix hessian(const RealVector& u) const;

  /// Newton's method, damped until J falls, to the last digits, for a smooth objective.
  RealVector newton(RealVector u) const;

  /// The minimiser: for kinks through floors 1e-1 ... \p last_floor, which leaves J within 0.4 last_floor of optimal.
  RealVector minimiser(real last_floor = 0) const;

  real margin(Index i, const RealVector& u) const;
  real spread(Index i, const RealVector& u) const;

  /// out = S_i w in the first places; \param u w, or (w, b).
  void multiply(Index i, const RealVector& u, RealVector& out) const;

  static real cdf(real z) { return std::erfc(-z / std::sqrt(real{2})) / 2; }
  static real density(real z) { return std::exp(-z * z / 2) / std::sqrt(8 * std::atan(real{1})); }
};

}  // namespace oracle
