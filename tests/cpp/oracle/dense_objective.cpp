// The dense objective, compiled once: extended precision has templates of Eigen of its own.

#include "oracle/dense_objective.hpp"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>

namespace oracle {
namespace {

/// Derivative of a function of one variable at 0 by a central difference of order 6.
template <class Function>
auto derivative(const Function& f, real h) {
  return ((45 * (f(h) - f(-h)) - 9 * (f(2 * h) - f(-2 * h)) + (f(3 * h) - f(-3 * h))) / (60 * h)).eval();
}

}  // namespace

real DenseObjective::value(const RealVector& u) const {
  real sum = real{lam} / 2 * u.head(X.cols()).squaredNorm();
  for (Index i = 0; i < X.rows(); ++i) {
    const real m = margin(i, u);
    const real s = spread(i, u);
    sum += real{c(i)} * (s > 0 ? m * cdf(m / s) + s * density(m / s) : std::max<real>(m, 0));
  }
  return sum;
}

RealVector DenseObjective::gradient(const RealVector& u) const {
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

RealVector DenseObjective::differenced_gradient(const RealVector& u, real h) const {
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

RealVector DenseObjective::differenced_hessian_vector(const RealVector& u, const RealVector& v, real h) const {
  return derivative([&](real t) { return gradient(u + t * v); }, h);
}

RealVector DenseObjective::newton(RealVector u) const {
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

RealVector DenseObjective::minimiser(real last_floor) const {
  DenseObjective smooth = *this;
  RealVector u = RealVector::Zero(size());
  for (real f = 0.1L; f >= 0.99L * std::max<real>(last_floor, 1e-8L); f /= 10) {
    smooth.floor = f;
    u = smooth.newton(u);
  }
  return last_floor > 0 ? u : newton(u);
}

real DenseObjective::margin(Index i, const RealVector& u) const {
  return 1 - real{y(i)} * (row(i).dot(u.head(X.cols())) + u(X.cols()));
}

real DenseObjective::spread(Index i, const RealVector& u) const {
  real s2 = floor * floor;
  if (!hinge) {
    const RealVector w = u.head(X.cols());
    s2 += std::max<real>(0, w.dot(S[static_cast<std::size_t>(i)].cast<real>() * w));
  }
  return std::sqrt(s2);
}

}  // namespace oracle
