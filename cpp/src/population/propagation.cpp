// Expectation propagation: a Gaussian and limits of its coordinates enter, readings with errors in their place leave.

#include "population/propagation.hpp"

#include "population/truncated.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::population {
namespace {

constexpr int most_sweeps = 200;
/// Of the moments, in units of themselves; the mass changes with the square of it.
constexpr double at_rest = 1e-11;
/// Smaller changes that no longer shrink are rounding.
constexpr double rounding = 1e-7;
/// Variances of sites, in units of the variance before the limits, that stand for infinity.
constexpr double says_nothing = 1e30;

}  // namespace

void LimitSites::fit(const ConstMatrixRef& covariance, const Vector& lower, const Vector& upper, const Vector& width) {
  const Index c = covariance.rows();
  scale_ = covariance.diagonal().cwiseSqrt();
  prior_ = covariance;
  for (Index i = 0; i < c; ++i) {
    for (Index j = 0; j < c; ++j) prior_(i, j) = i == j ? 1.0 : covariance(i, j) / (scale_(i) * scale_(j));
  }
  lower_ = lower.cwiseQuotient(scale_);
  upper_ = upper.cwiseQuotient(scale_);
  width_ = width.cwiseQuotient(scale_);
  C_ = prior_;
  mean_.setZero(c);
  tau_.setZero(c);
  b_.setZero(c);
  kept_.setOnes(c);
  cavity_.setZero(c);
  double step = 1.0;
  double before = infinity;
  converged = false;
  for (sweeps = 1; sweeps <= most_sweeps; ++sweeps) {
    change_ = 0.0;
    sweep(step);
    converged = c == 1 || change_ < at_rest || (change_ < rounding && change_ >= before);
    if (converged) break;
    // The sites are concave, so that sweeps seldom fail to converge; where they overshoot, shorter steps do not.
    if (sweeps > 5 && change_ > 0.7 * before) step = std::max(0.7 * step, 0.1);
    before = change_;
  }
  finish();
  if (log_mass > -infinity) return;
  // So far out that squares overflow: the limits have no mass, and what they would tell is not asked for.
  log_mass = -infinity;
  reading.setZero(c);
  variance = says_nothing * scale_.cwiseAbs2();
  precision.setZero(c, c);
  pull.setZero(c);
}

void LimitSites::sweep(double step) {
  for (Index i = 0; i < tau_.size(); ++i) {
    const double variance = C_(i, i) / kept_(i);
    const double mean = cavity_(i) / kept_(i);
    const double sd = std::sqrt(variance);
    const Truncated within = truncated_normal((lower_(i) - mean) / sd, (upper_(i) - mean) / sd, width_(i) / sd);
    const double target = within.variance * variance;
    change_ = std::max(
        {change_, std::abs(mean + sd * within.mean - mean_(i)) / std::sqrt(target), std::abs(target / C_(i, i) - 1.0)});
    const double tau = within.lost / target;
    const double b = mean * tau + within.mean * sd / target;
    update(i, tau_(i) + step * (tau - tau_(i)), b_(i) + step * (b - b_(i)));
  }
}

/// Replaces site i. What follows from it is never a difference of what it changes.
void LimitSites::update(Index i, double site_precision, double site_pull) {
  const double variance = C_(i, i) / kept_(i);
  const double mean = cavity_(i) / kept_(i);
  const double kept = 1.0 / (1.0 + site_precision * variance);
  const double grown = kept / kept_(i);  // of C_ii
  const double dtau = (site_precision - tau_(i)) * grown;
  const double gain = (site_pull - b_(i) - (site_precision - tau_(i)) * mean_(i)) * grown;
  for (Index j = 0; j < tau_.size(); ++j) {
    if (j == i) continue;
    const double lost = C_(i, j) * C_(i, j) * dtau;
    kept_(j) += tau_(j) * lost;
    cavity_(j) += C_(i, j) * gain + b_(j) * lost;
    mean_(j) += C_(i, j) * gain;
    for (Index l = 0; l < tau_.size(); ++l) {
      if (l != i && l != j) C_(j, l) -= C_(i, j) * C_(i, l) * dtau;
    }
    C_(j, j) = std::max(C_(j, j) - lost, singular_pivot * C_(j, j));
  }
  for (Index j = 0; j < tau_.size(); ++j) {
    if (j != i) C_(i, j) = C_(j, i) = C_(i, j) * grown;
  }
  tau_(i) = site_precision;
  b_(i) = site_pull;
  C_(i, i) = variance * kept;
  kept_(i) = kept;
  cavity_(i) = mean * kept;
  mean_(i) = (mean + variance * site_pull) * kept;
}

/// B = I + D^1/2 C D^1/2 with D = diag(tau), never ill-conditioned by what a site is; e = b / sqrt(tau).
void LimitSites::finish() {
  const Index c = tau_.size();
  const Vector root_tau = tau_.cwiseSqrt();
  Vector e(c);
  for (Index i = 0; i < c; ++i) e(i) = tau_(i) > 0.0 ? b_(i) / root_tau(i) : 0.0;
  root_ = prior_;
  for (Index i = 0; i < c; ++i) {
    for (Index j = 0; j < c; ++j) root_(i, j) = root_tau(i) * prior_(i, j) * root_tau(j) + (i == j ? 1.0 : 0.0);
  }
  cholesky(root_);
  log_mass = -0.5 * log_determinant(root_);
  invert_lower(root_);
  precision.resize(c, c);
  for (Index i = 0; i < c; ++i) {
    for (Index j = 0; j <= i; ++j) {
      // Of B^-1 = L^-T L^-1.
      precision(i, j) = precision(j, i) = root_.col(i).tail(c - i).dot(root_.col(j).tail(c - i));
    }
  }
  const Vector part = precision.lazyProduct(e);
  log_mass -= 0.5 * e.dot(part);
  reading.resize(c);
  variance.resize(c);
  pull.resize(c);
  for (Index i = 0; i < c; ++i) {
    const double cavity_variance = C_(i, i) / kept_(i);
    const double cavity_mean = cavity_(i) / kept_(i);
    const double sd = std::sqrt(cavity_variance);
    const double apart = e(i) - root_tau(i) * cavity_mean;
    const double share = 1.0 + tau_(i) * cavity_variance;
    log_mass +=
        truncated_normal((lower_(i) - cavity_mean) / sd, (upper_(i) - cavity_mean) / sd, width_(i) / sd).log_mass +
        0.5 * (std::log(share) + apart * apart / share);
    const bool counts = tau_(i) * says_nothing > 1.0;
    reading(i) = counts ? scale_(i) * b_(i) / tau_(i) : 0.0;
    variance(i) = scale_(i) * scale_(i) * (counts ? 1.0 / tau_(i) : says_nothing);
    pull(i) = root_tau(i) * part(i) / scale_(i);
    for (Index j = 0; j <= i; ++j) {
      precision(i, j) = precision(j, i) = root_tau(i) * precision(i, j) * root_tau(j) / (scale_(i) * scale_(j));
    }
  }
}

}  // namespace halosvm::population
