// The M step: sums of posterior moments enter, the population of the largest expected likelihood leaves.

#include "population/maximisation.hpp"

#include "linalg/multiply.hpp"
#include "linalg/pivoted_cholesky.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::population {
namespace {

using linalg::product;

/// V' = (q R (1 + R'G R / q - s s') R' + W) / (q + nu) with V = R R', s = R' pull / q. Between the roots stands a sum
/// of posterior moments in units of V: it stays positive however near to singular V is, and V may be singular.
void update_full(Population& next, const Population& old, const Statistics& sums, Index k, const Prior& prior) {
  const Index d = old.n_features();
  const double q = sums.mass(k);
  const Matrix V = old.matrices.middleRows(k * d, d);
  Matrix R = V;
  if (cholesky(R)) {
    R.triangularView<Eigen::StrictlyUpper>().setZero();
  } else {
    R = linalg::pivoted_cholesky(V);
  }
  const Vector shift = product<Vector>(R.transpose(), sums.pull.row(k).transpose()) / q;
  Matrix change = product(product(R.transpose(), sums.curvature.middleRows(k * d, d)), R) / q;
  change = (0.5 * (change + change.transpose()) - shift * shift.transpose()).eval();
  next.means.row(k) += product<Vector>(R, shift).transpose();

  change.diagonal().array() += 1.0;
  const Matrix second = product(product(R, change), R.transpose());
  auto next_V = next.matrices.middleRows(k * d, d);
  next_V = (0.5 * q / (q + prior.weight)) * (second + second.transpose());
  next_V.diagonal() += prior.scatter / (q + prior.weight);
}

void update_diagonal(Population& next, const Moments& moments, double q, Index k, const Prior& prior) {
  for (Index j = 0; j < next.n_features(); ++j) {
    const double shift = moments.shift(j);
    const double scatter = q * std::max(0.0, moments.spread(j) - shift * shift) + prior.scatter(j);
    next.means(k, j) += shift;
    next.variances(k, j) = scatter / (q + prior.weight);
  }
}

/// Regression of v on the factors and a constant.
void update_factors(Population& next, const Moments& moments, double q, Index k, const Prior& prior) {
  const Index d = next.n_features();
  const Matrix cross = moments.cross - moments.shift * moments.latent.transpose();
  Matrix square = moments.square - moments.latent * moments.latent.transpose();
  Matrix L = cross.transpose();
  if (square.rows() > 0) {
    if (!cholesky(square)) return;  // factors of no use any more; E zz' >= M > 0 but for rounding
    solve(square, L);
  }
  L.transposeInPlace();
  next.factors.middleRows(k * d, d) = L;
  for (Index j = 0; j < d; ++j) {
    next.means(k, j) += moments.shift(j) - L.row(j).dot(moments.latent);
    const double own = moments.spread(j) - moments.shift(j) * moments.shift(j) - L.row(j).dot(cross.row(j));
    next.variances(k, j) = (q * std::max(0.0, own) + prior.scatter(j)) / (q + prior.weight);
  }
}

}  // namespace

Moments moments_of(const Population& old, const Statistics& sums, Index k) {
  const Index d = old.n_features();
  const Index h = old.n_factors();
  const double q = sums.mass(k);
  Moments out{Vector(), Vector(), Vector::Zero(h), Matrix::Zero(d, h), Matrix::Zero(h, h)};
  if (sums.shift.size() > 0) {
    out.shift = sums.shift.row(k).transpose() / q;
    out.spread = sums.spread.row(k).transpose() / q;
    out.latent = sums.latent.row(k).transpose() / q;
    out.cross = sums.cross.middleRows(k * d, d) / q;
    out.square = sums.square.middleRows(k * h, h) / q;
    return out;
  }
  const Matrix V = old.covariance(k);
  out.shift = product<Vector>(V, sums.pull.row(k).transpose()) / q;
  const Matrix second = V + product(product(V, sums.curvature.middleRows(k * d, d)), V) / q;
  out.spread = second.diagonal();
  if (h == 0) return out;
  // E z = beta (v - m) for a known v, beta = L' V^-1, and the covariance I - beta L.
  const auto L = old.factors.middleRows(k * d, d);
  Matrix root = V;
  Matrix beta = L;
  for (double lift = 1e-14; !cholesky(root); lift *= 10.0) {
    root = V;
    root.diagonal().array() += lift * V.diagonal().maxCoeff() + smallest_variance;
  }
  solve(root, beta);
  out.latent = product<Vector>(beta.transpose(), out.shift);
  out.cross = product(second, beta);
  out.square.setIdentity(h, h);
  linalg::add_product(beta.transpose(), L, out.square, -1.0);
  linalg::add_product(beta.transpose(), out.cross, out.square);
  return out;
}

Population maximise(const Population& population, const Statistics& sums, double total_weight, const Prior& prior) {
  Population next = population;
  for (Index k = 0; k < population.n_components(); ++k) {
    const double q = sums.mass(k);
    next.weights(k) = q / total_weight;
    if (!(next.weights(k) > dead)) continue;
    if (population.kind == PopulationKind::full) {
      update_full(next, population, sums, k, prior);
    } else if (population.kind == PopulationKind::diagonal) {
      update_diagonal(next, moments_of(population, sums, k), q, k, prior);
    } else {
      update_factors(next, moments_of(population, sums, k), q, k, prior);
    }
  }
  bury_dead(next);
  return next;
}

void bury_dead(Population& population) {
  Index largest = 0;
  population.weights.maxCoeff(&largest);
  const Index d = population.n_features();
  for (Index k = 0; k < population.n_components(); ++k) {
    if (population.weights(k) > dead || k == largest) continue;
    population.weights(k) = 0.0;
    population.means.row(k) = population.means.row(largest);
    for (Matrix* each : {&population.matrices, &population.factors}) {
      if (each->size() > 0) each->middleRows(k * d, d) = each->middleRows(largest * d, d);
    }
    if (population.variances.size() > 0) population.variances.row(k) = population.variances.row(largest);
  }
  population.weights /= population.weights.sum();
}

double log_prior(const Population& population, const Prior& prior) {
  if (!prior.any()) return 0.0;
  const Index d = population.n_features();
  double sum = 0.0;
  for (Index k = 0; k < population.n_components(); ++k) {
    if (!(population.weights(k) > 0.0)) continue;
    for (Index j = 0; j < d; ++j) {
      if (prior.weight > 0.0 && prior.scatter(j) > 0.0) sum -= prior.weight * std::log(prior.scatter(j) / prior.weight);
    }
    if (population.kind != PopulationKind::full) {
      for (Index j = 0; j < d; ++j) {
        const double variance = population.variances(k, j);
        if (prior.scatter(j) > 0.0) sum += prior.scatter(j) / variance;
        if (prior.weight > 0.0) sum += prior.weight * std::log(variance);
      }
      continue;
    }
    Matrix L = population.matrices.middleRows(k * d, d);
    if (!cholesky(L)) return -infinity;
    sum += prior.weight * log_determinant(L);
    invert_lower(L);
    sum += L.colwise().squaredNorm().dot(prior.scatter.transpose());
  }
  return std::isfinite(sum) ? -0.5 * sum : -infinity;
}

}  // namespace halosvm::population
