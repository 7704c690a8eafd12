/// \file
/// The objective of one binary problem written down directly, in extended precision and with a dense matrix for each
/// example, and a minimiser that knows nothing of the library's.
#pragma once

#include "oracle/accuracy.hpp"
#include "oracle/random.hpp"

#include <Eigen/Cholesky>

#include <vector>

namespace oracle {

using RealVector = Eigen::Matrix<real, Eigen::Dynamic, 1>;
using RealMatrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic>;

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
  real value(const RealVector& u) const {
    real sum = real{lam} / 2 * u.head(X.cols()).squaredNorm();
    for (Index i = 0; i < X.rows(); ++i) {
      const real m = margin(i, u);
      const real s = spread(i, u);
      sum += real{c(i)} * (s > 0 ? m * cdf(m / s) + s * density(m / s) : std::max<real>(m, 0));
    }
    return sum;
  }

  /// Spec A.3, with Phi = 1/2 at the kink.
  RealVector gradient(const RealVector& u) const {
    const Index d = X.cols();
    RealVector g = RealVector::Zero(d + 1);
    g.head(d) = real{lam} * u.head(d);
    for (Index i = 0; i < X.rows(); ++i) {
      const real m = margin(i, u);
      const real s = spread(i, u);
      const real slope = s > 0 ? cdf(m / s) : (m > 0 ? real{1} : (m < 0 ? real{0} : real{1} / 2));
      const real a = -real{y(i)} * real{c(i)} * slope;
      g.head(d) += a * row(i);
      g(d) += a;
      if (s > 0 && !hinge) {
        g.head(d) += real{c(i)} * density(m / s) / s * (S[static_cast<std::size_t>(i)].cast<real>() * u.head(d)).eval();
      }
    }
    if (!fit_intercept) g(d) = 0;
    return g;
  }

  /// Derivative of a function of one variable at 0 by a central difference of order 6.
  template <class Function>
  static auto derivative(const Function& f, real h) {
    return ((45 * (f(h) - f(-h)) - 9 * (f(2 * h) - f(-2 * h)) + (f(3 * h) - f(-3 * h))) / (60 * h)).eval();
  }

  /// Central differences of \ref value.
  RealVector differenced_gradient(const RealVector& u, real h = 1e-4L) const {
    RealVector g(size());
    for (Index j = 0; j < size(); ++j) {
      g(j) = derivative(
          [&](real t) {
            RealVector at = u;
            at(j) += t;
            return RealVector(RealVector::Constant(1, value(at)));
          },
          h)(0);
    }
    if (!fit_intercept) g(X.cols()) = 0;
    return g;
  }

  /// Central differences of \ref gradient along v.
  RealVector differenced_hessian_vector(const RealVector& u, const RealVector& v, real h = 1e-4L) const {
    return derivative([&](real t) { return gradient(u + t * v); }, h);
  }

  /// Newton's method, damped until J falls, to the last digits, for a smooth objective.
  RealVector newton(RealVector u) const {
    real damping = 1;
    for (int iteration = 0; iteration < 300; ++iteration) {
      const RealVector g = gradient(u);
      RealMatrix H(size(), size());
      for (Index j = 0; j < size(); ++j) {
        H.col(j) = differenced_hessian_vector(u, RealVector::Unit(size(), j), 1e-6L * std::max<real>(1, u.norm()));
      }
      H = (H + H.transpose()).eval() / 2;
      if (!fit_intercept) {
        H.row(X.cols()).setZero();
        H.col(X.cols()).setZero();
      }
      const real before = value(u);
      bool better = false;
      while (!better && damping < 1e15L) {
        RealMatrix damped = H;
        damped.diagonal().array() += damping;
        const RealVector step = -damped.ldlt().solve(g);
        better = value(u + step) < before;
        if (better) u += step;
        damping *= better ? 0.1L : 4;
      }
      if (!better) break;
    }
    return u;
  }

  /// The minimiser: for kinks through floors 1e-1 ... \p last_floor, which leaves J within 0.4 last_floor of optimal.
  RealVector minimiser(real last_floor = 0) const {
    DenseObjective smooth = *this;
    RealVector u = RealVector::Zero(size());
    for (real f = 0.1L; f >= 0.99L * std::max<real>(last_floor, 1e-8L); f /= 10) {
      smooth.floor = f;
      u = smooth.newton(u);
    }
    return last_floor > 0 ? u : newton(u);
  }

  real margin(Index i, const RealVector& u) const {
    return 1 - real{y(i)} * (row(i).dot(u.head(X.cols())) + u(X.cols()));
  }
  real spread(Index i, const RealVector& u) const {
    real s2 = floor * floor;
    if (!hinge) {
      const RealVector w = u.head(X.cols());
      s2 += std::max<real>(0, w.dot(S[static_cast<std::size_t>(i)].cast<real>() * w));
    }
    return std::sqrt(s2);
  }

  static real cdf(real z) { return std::erfc(-z / std::sqrt(real{2})) / 2; }
  static real density(real z) { return std::exp(-z * z / 2) / std::sqrt(8 * std::atan(real{1})); }

 private:
  RealVector row(Index i) const { return X.row(i).transpose().cast<real>(); }
};

}  // namespace oracle
