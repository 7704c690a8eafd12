// The dense objective, compiled once: extended precision has templates of Eigen of its own.

#include "oracle/dense_objective.hpp"

#include "oracle/cholesky.hpp"

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
  RealVector product(d);
  for (Index j = 0; j < d; ++j) g(j) = real{lam} * u(j);
  for (Index i = 0; i < X.rows(); ++i) {
    const real m = margin(i, u);
    const real s = spread(i, u);
    const real slope = s > 0 ? cdf(m / s) : (m > 0 ? real{1} : (m < 0 ? real{0} : real{1} / 2));
    const real a = -real{y(i)} * real{c(i)} * slope;
    for (Index j = 0; j < d; ++j) g(j) += a * X(i, j);
    g(d) += a;
    if (s > 0 && !hinge) {
      const real b = real{c(i)} * density(m / s) / s;
      multiply(i, u, product);
      for (Index j = 0; j < d; ++j) g(j) += b * product(j);
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

RealMatrix DenseObjective::hessian(const RealVector& u) const {
  const Index d = X.cols();
  RealMatrix H = RealMatrix::Zero(d + 1, d + 1);
  for (Index j = 0; j < d; ++j) H(j, j) = lam;
  RealVector slope = RealVector::Zero(d + 1);  // of s
  RealVector turn(d + 1);                      // s times that of m / s
  for (Index i = 0; i < X.rows(); ++i) {
    const real s = spread(i, u);
    if (!(s > 0)) continue;
    const real z = margin(i, u) / s;
    const real a = real{c(i)} * density(z) / s;
    if (!hinge) multiply(i, u, slope);
    for (Index j = 0; j < d; ++j) {
      slope(j) /= s;
      turn(j) = -real{y(i)} * X(i, j) - z * slope(j);
    }
    turn(d) = -y(i);
    for (Index j = 0; j <= d; ++j) {
      for (Index k = 0; k <= d; ++k) {
        const real S_jk = hinge || j == d || k == d ? 0.0 : S[static_cast<std::size_t>(i)](j, k);
        H(j, k) += a * (turn(j) * turn(k) + S_jk - slope(j) * slope(k));
      }
    }
  }
  for (Index j = 0; j <= d && !fit_intercept; ++j) H(d, j) = H(j, d) = 0;
  return H;
}

RealVector DenseObjective::newton(RealVector u) const {
  real damping = 1;
  for (int iteration = 0; iteration < 300; ++iteration) {
    const RealVector g = gradient(u);
    const RealMatrix H = hessian(u);
    const real before = value(u);
    bool better = false;
    while (!better && damping < 1e15L) {
      RealMatrix damped = H;
      for (Index j = 0; j < size(); ++j) damped(j, j) += damping;
      RealVector step = g;
      if (factorise(damped.data(), size())) {
        solve(damped.data(), size(), step.data());
        solve_transposed(damped.data(), size(), step.data());
        better = value(u - step) < before;
      }
      if (better) u -= step;
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
  real score = u(X.cols());
  for (Index j = 0; j < X.cols(); ++j) score += real{X(i, j)} * u(j);
  return 1 - real{y(i)} * score;
}

real DenseObjective::spread(Index i, const RealVector& u) const {
  real s2 = floor * floor;
  if (!hinge) {
    RealVector product(X.cols());
    multiply(i, u, product);
    real square = 0;
    for (Index j = 0; j < X.cols(); ++j) square += product(j) * u(j);
    s2 += std::max<real>(0, square);
  }
  return std::sqrt(s2);
}

void DenseObjective::multiply(Index i, const RealVector& u, RealVector& out) const {
  const Index d = X.cols();
  const double* row = S[static_cast<std::size_t>(i)].data();
  for (Index j = 0; j < d; ++j, row += d) {
    out(j) = 0;
    for (Index k = 0; k < d; ++k) out(j) += row[k] * u(k);
  }
}

}  // namespace oracle
