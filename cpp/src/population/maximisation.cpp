// The M step: sums of posterior moments enter, the population of the largest expected likelihood leaves.

#include "population/maximisation.hpp"

#include "linalg/multiply.hpp"
#include "linalg/pivoted_cholesky.hpp"
#include "population/offsets.hpp"

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
  Vector shift = product<Vector>(R.transpose(), sums.pull.row(k).transpose()) / q;
  if (HeldParts::of(old.held.means, k)) shift.setZero();
  Matrix change = product(product(R.transpose(), sums.curvature.middleRows(k * d, d)), R) / q;
  change = (0.5 * (change + change.transpose()) - shift * shift.transpose()).eval();
  next.means.row(k) += product<Vector>(R, shift).transpose();

  change.diagonal().array() += 1.0;
  const Matrix second = product(product(R, change), R.transpose());
  auto next_V = next.matrices.middleRows(k * d, d);
  next_V = (0.5 * q / (q + prior.weight)) * (second + second.transpose());
  next_V += prior.whole() / (q + prior.weight);
}

void update_diagonal(Population& next, const Moments& moments, double q, Index k, const Prior& prior) {
  for (Index j = 0; j < next.n_features(); ++j) {
    const double shift = moments.shift(j);
    const double scatter = q * std::max(0.0, moments.spread(j) - shift * shift) + prior.scatter(j);
    next.means(k, j) += shift;
    next.variances(k, j) = scatter / (q + prior.weight);
  }
}

/// Moments for the M step: with a mean that is held there is no constant in the regressions.
Moments free_moments_of(const Population& old, const Statistics& sums, Index k) {
  Moments out = moments_of(old, sums, k);
  if (HeldParts::of(old.held.means, k)) {
    out.shift.setZero();
    out.latent.setZero();
  }
  return out;
}

/// Regression of v on the factors and a constant; with one slope and one residual spread for a group of components.
void update_factors(Population& next, const Population& old, const Statistics& sums, const std::vector<Index>& group,
                    const Prior& prior) {
  const Index d = next.n_features();
  const Index h = next.n_factors();
  std::vector<Moments> moments;
  double mass = 0.0;
  Matrix cross = Matrix::Zero(d, h);
  Matrix square = Matrix::Zero(h, h);
  for (const Index k : group) {
    moments.push_back(free_moments_of(old, sums, k));
    const Moments& own = moments.back();
    const double q = sums.mass(k);
    mass += q;
    cross += q * (own.cross - own.shift * own.latent.transpose());
    square += q * (own.square - own.latent * own.latent.transpose());
  }
  cross /= mass;
  square /= mass;
  Matrix L = cross.transpose();
  if (h > 0) {
    if (!cholesky(square)) return;  // factors of no use any more; E zz' >= M > 0 but for rounding
    solve(square, L);
  }
  L.transposeInPlace();
  Vector rest = Vector::Zero(d);
  for (std::size_t i = 0; i < group.size(); ++i) {
    const Moments& own = moments[i];
    next.factors.middleRows(group[i] * d, d) = L;
    next.means.row(group[i]) += (own.shift - product<Vector>(L, own.latent)).transpose();
    rest += sums.mass(group[i]) * (own.spread - own.shift.cwiseAbs2());
  }
  const auto n = static_cast<double>(group.size());
  for (Index j = 0; j < d; ++j) {
    const double spread = std::max(0.0, rest(j) - mass * L.row(j).dot(cross.row(j)));
    const double variance = (spread + n * prior.scatter(j)) / (mass + n * prior.weight);
    for (const Index k : group) next.variances(k, j) = variance;
  }
}

/// Gives all components of a group the V of the largest expected likelihood that is one for them: the mean of theirs,
/// weighted by their members and those of the prior.
void tie_covariances(Population& next, const Statistics& sums, const std::vector<Index>& group, const Prior& prior) {
  const bool full = next.kind == PopulationKind::full;
  Matrix& shapes = full ? next.matrices : next.variances;
  const Index rows = full ? next.n_features() : 1;
  Matrix mean = Matrix::Zero(rows, next.n_features());
  double total = 0.0;
  for (const Index k : group) {
    const double weight = sums.mass(k) + prior.weight;
    mean += weight * shapes.middleRows(k * rows, rows);
    total += weight;
  }
  mean /= total;
  for (const Index k : group) shapes.middleRows(k * rows, rows) = mean;
}

/// Calls visit(begin, end) for the components of each class.
template <class Visit>
void for_each_class(const Population& population, const Visit& visit) {
  const std::vector<Index>& classes = population.classes;
  Index begin = 0;
  for (Index k = 1; k <= population.n_components(); ++k) {
    const bool ends =
        k == population.n_components() ||
        (!classes.empty() && classes[static_cast<std::size_t>(k)] != classes[static_cast<std::size_t>(begin)]);
    if (!ends) continue;
    visit(begin, k);
    begin = k;
  }
}

/// The components whose weight is not too small a part of that of their class.
std::vector<Index> living(const Population& population) {
  std::vector<Index> out;
  for_each_class(population, [&](Index begin, Index end) {
    const double least = dead * population.weights.segment(begin, end - begin).sum();
    for (Index k = begin; k < end; ++k) {
      if (population.weights(k) > least) out.push_back(k);
    }
  });
  return out;
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

Statistics latent_sums(const Population& population, const Statistics& sums) {
  const Index d = population.n_features();
  const Index h = population.n_factors();
  Statistics out;
  out.reset(population.n_components(), d, h, false);
  out.log_likelihood = sums.log_likelihood;
  out.mass = sums.mass;
  out.precision = sums.precision;
  for (Index k = 0; k < population.n_components(); ++k) {
    const double q = sums.mass(k);
    if (!(q > 0.0)) continue;
    const Moments moments = moments_of(population, sums, k);
    out.shift.row(k) = q * moments.shift.transpose();
    out.spread.row(k) = q * moments.spread.transpose();
    out.latent.row(k) = q * moments.latent.transpose();
    out.cross.middleRows(k * d, d) = q * moments.cross;
    out.square.middleRows(k * h, h) = q * moments.square;
  }
  return out;
}

Population maximise(const Population& population, const Statistics& sums, double total_weight, const Prior& prior) {
  Population next = population;
  next.weights = sums.mass / total_weight;
  keep_held_weights(next, population);
  std::vector<Index> group;
  for (const Index k : living(next)) {
    // A weight that is held says nothing of members; without any, nothing moves.
    if (sums.mass(k) > dead * dead * total_weight) group.push_back(k);
  }
  for (const Index k : group) {
    const double q = sums.mass(k);
    if (population.kind == PopulationKind::full) {
      update_full(next, population, sums, k, prior);
    } else if (population.kind == PopulationKind::diagonal) {
      update_diagonal(next, free_moments_of(population, sums, k), q, k, prior);
    } else if (!population.tied) {
      update_factors(next, population, sums, {k}, prior);
    }
  }
  if (population.tied) {
    if (population.kind == PopulationKind::factors) {
      update_factors(next, population, sums, group, prior);
    } else {
      tie_covariances(next, sums, group, prior);
    }
  }
  for (Index k = 0; k < next.n_components(); ++k) {
    if (HeldParts::of(population.held.covariances, k)) next.take_shape(k, population, k);
  }
  if (sums.offsets.count > 0.0) update_offsets(next, sums.offsets, prior);
  bury_dead(next);
  return next;
}

void keep_held_weights(Population& population, const Population& like) {
  if (like.held.weights.empty()) return;
  double held = 0.0;
  double free = 0.0;
  for (Index k = 0; k < like.n_components(); ++k) {
    if (HeldParts::of(like.held.weights, k)) {
      held += like.weights(k);
    } else {
      free += population.weights(k);
    }
  }
  for (Index k = 0; k < like.n_components(); ++k) {
    if (HeldParts::of(like.held.weights, k)) {
      population.weights(k) = like.weights(k);
    } else {
      population.weights(k) *= free > 0.0 ? (1.0 - held) / free : 0.0;
    }
  }
}

void bury_dead(Population& population) {
  const std::vector<Index> alive = living(population);
  for_each_class(population, [&](Index begin, Index end) {
    Index largest = 0;
    population.weights.segment(begin, end - begin).maxCoeff(&largest);
    largest += begin;
    for (Index k = begin; k < end; ++k) {
      if (k == largest || std::binary_search(alive.begin(), alive.end(), k)) continue;
      population.weights(k) = 0.0;
      if (!HeldParts::of(population.held.means, k)) population.means.row(k) = population.means.row(largest);
      if (!HeldParts::of(population.held.covariances, k)) population.take_shape(k, largest);
    }
  });
  population.weights /= population.weights.sum();
}

namespace {

/// nu log|W / nu|, of the features with a scatter.
double log_scatter(const Population& population, const Prior& prior) {
  if (!(prior.weight > 0.0)) return 0.0;
  const Index d = population.n_features();
  if (population.kind == PopulationKind::full && prior.is_matrix()) {
    Matrix W = prior.whole();
    if (!cholesky(W)) return 0.0;
    return prior.weight * (log_determinant(W) - static_cast<double>(d) * std::log(prior.weight));
  }
  double sum = 0.0;
  for (Index j = 0; j < d; ++j) {
    if (prior.scatter(j) > 0.0) sum += prior.weight * std::log(prior.scatter(j) / prior.weight);
  }
  return sum;
}

}  // namespace

double log_prior(const Population& population, const Prior& prior) {
  if (!prior.any()) return 0.0;
  const Index d = population.n_features();
  double sum = 0.0;
  for (Index k = 0; k < population.n_components(); ++k) {
    if (!(population.weights(k) > 0.0)) continue;
    sum -= log_scatter(population, prior);
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
    sum += product(L, prior.whole()).cwiseProduct(L).sum();
  }
  return std::isfinite(sum) ? -0.5 * sum : -infinity;
}

}  // namespace halosvm::population
