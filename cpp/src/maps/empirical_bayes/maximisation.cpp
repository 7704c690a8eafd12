// The M step: sums of posterior moments enter, the population of the largest expected likelihood leaves.

#include "maps/empirical_bayes/maximisation.hpp"

#include "linalg/multiply.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::maps {
namespace {

using linalg::product;

/// Moments of a component's posteriors about its old mean, divided by its mass.
struct Moments {
  Vector shift;   ///< E (v - m), d
  Vector spread;  ///< diagonal of E (v - m)(v - m)', d
  Vector latent;  ///< E z, h
  Matrix cross;   ///< E (v - m) z', d x h
  Matrix square;  ///< E z z', h x h
};

double half_square(double change, double variance) { return variance > 0.0 ? 0.5 * change * change / variance : 0.0; }

/// V' = V + V G V / q - u u' + W / q: no T^-1 and no V^-1 enters, so that V may be singular.
double update_full(Population& next, const Population& old, const Statistics& sums, Index k, const Vector& prior) {
  const Index d = old.n_features();
  const double q = sums.mass(k);
  const Matrix V = old.matrices.middleRows(k * d, d);
  const Matrix G = sums.curvature.middleRows(k * d, d);
  const Vector shift = product<Vector>(V, sums.pull.row(k).transpose()) / q;
  const Matrix VG = product(V, G);
  Matrix change = product(VG, V) / q - shift * shift.transpose();
  change = (0.5 * (change + change.transpose())).eval();
  change.diagonal() += prior / q;
  next.means.row(k) += shift.transpose();
  next.matrices.middleRows(k * d, d) = V + change;
  next.matrices.middleRows(k * d, d).diagonal() = next.matrices.middleRows(k * d, d).diagonal().cwiseMax(0.0);

  Matrix L = V;
  if (!cholesky(L)) {
    return 0.25 * VG.cwiseProduct(VG.transpose()).sum() / q + 0.5 * sums.pull.row(k).dot(shift);
  }
  invert_lower(L);
  const Matrix whitened = product(product(L, change), L.transpose());
  return q * (0.25 * whitened.squaredNorm() + 0.5 * product<Vector>(L, shift).squaredNorm());
}

double update_diagonal(Population& next, const Population& old, const Moments& moments, double q, Index k,
                       const Vector& prior) {
  double gain = 0.0;
  for (Index j = 0; j < old.n_features(); ++j) {
    const double variance = old.variances(k, j);
    const double shift = moments.shift(j);
    next.means(k, j) += shift;
    next.variances(k, j) = std::max(0.0, moments.spread(j) - shift * shift) + prior(j) / q;
    const double change = next.variances(k, j) - variance;
    gain += half_square(shift, variance) + half_square(change, 2.0 * variance * variance);
  }
  return q * gain;
}

/// Regression of v on the factors and a constant.
double update_factors(Population& next, const Population& old, const Moments& moments, double q, Index k,
                      const Vector& prior) {
  const Index d = old.n_features();
  const auto L = old.factors.middleRows(k * d, d);
  const Matrix cross = moments.cross - moments.shift * moments.latent.transpose();
  Matrix square = moments.square - moments.latent * moments.latent.transpose();
  Matrix next_L = cross.transpose();
  if (square.rows() > 0) {
    if (!cholesky(square)) return 0.0;  // factors of no use any more; E zz' >= M > 0 but for rounding
    solve(square, next_L);
  }
  next_L.transposeInPlace();
  next.factors.middleRows(k * d, d) = next_L;
  const Matrix L_square = product(L, moments.square);
  double gain = 0.0;
  for (Index j = 0; j < d; ++j) {
    next.means(k, j) += moments.shift(j) - next_L.row(j).dot(moments.latent);
    const double own = moments.spread(j) - moments.shift(j) * moments.shift(j) - next_L.row(j).dot(cross.row(j));
    next.variances(k, j) = std::max(0.0, own) + prior(j) / q;
    const double before = old.variances(k, j);
    if (!(before > 0.0 && next.variances(k, j) > 0.0)) continue;
    const double residual =
        moments.spread(j) - 2.0 * L.row(j).dot(moments.cross.row(j)) + L_square.row(j).dot(L.row(j)) + prior(j) / q;
    gain += 0.5 * (residual / before - 1.0 - std::log(next.variances(k, j) / before));
  }
  return q * std::max(0.0, gain);
}

Moments moments_of(const Population& old, const Statistics& sums, Index k) {
  const Index d = old.n_features();
  const Index h = old.n_factors();
  const double q = sums.mass(k);
  Moments out;
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

}  // namespace

Step maximise(const Population& population, const Statistics& sums, double total_weight, const Vector& prior) {
  Step step{population, 0.0};
  for (Index k = 0; k < population.n_components(); ++k) {
    const double q = sums.mass(k);
    if (!(q > dead * total_weight)) {
      step.population.weights(k) = 0.0;
      continue;
    }
    step.population.weights(k) = q / total_weight;
    step.gain += total_weight * half_square(q / total_weight - population.weights(k), population.weights(k));
    if (population.kind == PopulationKind::full) {
      step.gain += update_full(step.population, population, sums, k, prior);
      continue;
    }
    const Moments moments = moments_of(population, sums, k);
    step.gain += population.kind == PopulationKind::diagonal
                     ? update_diagonal(step.population, population, moments, q, k, prior)
                     : update_factors(step.population, population, moments, q, k, prior);
  }
  step.population.weights /= step.population.weights.sum();
  return step;
}

double log_prior(const Population& population, const Vector& prior) {
  if (!(prior.array() > 0.0).any()) return 0.0;
  const Index d = population.n_features();
  double sum = 0.0;
  for (Index k = 0; k < population.n_components(); ++k) {
    if (population.kind != PopulationKind::full) {
      for (Index j = 0; j < d; ++j) {
        if (prior(j) > 0.0) sum += prior(j) / population.variances(k, j);
      }
      continue;
    }
    Matrix L = population.matrices.middleRows(k * d, d);
    if (!cholesky(L)) return -infinity;
    invert_lower(L);
    sum += L.colwise().squaredNorm().dot(prior.transpose());
  }
  return std::isfinite(sum) ? -0.5 * sum : -infinity;
}

namespace {

constexpr double smallest = 1e-60;  // part of the unit of a variance that still has a logarithm

/// Writes what \ref Reader reads, number by number.
class Writer {
 public:
  explicit Writer(std::vector<double>& out) : out_(out) {}
  void value(double x) { out_.push_back(x); }
  void variance(double x) { out_.push_back(std::log(std::max(x, smallest))); }

 private:
  std::vector<double>& out_;
};

class Reader {
 public:
  explicit Reader(const Vector& in) : in_(in) {}
  double value() { return in_(at_++); }
  double variance() { return std::exp(value()); }

 private:
  const Vector& in_;
  Index at_ = 0;
};

/// Cholesky's factor of V in units of scale; pivots that rounding makes too small are lifted.
Matrix root_of(const ConstMatrixRef& V, const Vector& scale) {
  const Index d = scale.size();
  Matrix L = Matrix::Zero(d, d);
  for (Index i = 0; i < d; ++i) {
    for (Index j = 0; j < i; ++j) {
      L(i, j) = (V(i, j) / (scale(i) * scale(j)) - L.row(i).head(j).dot(L.row(j).head(j))) / L(j, j);
    }
    const double diagonal = V(i, i) / (scale(i) * scale(i));
    const double pivot = diagonal - L.row(i).head(i).squaredNorm();
    L(i, i) = std::sqrt(std::max({pivot, singular_pivot * diagonal, smallest}));
  }
  return L;
}

}  // namespace

Vector coordinates(const Population& population, const Vector& scale) {
  std::vector<double> out;
  Writer write(out);
  const Index d = population.n_features();
  for (Index k = 0; k < population.n_components(); ++k) {
    if (!(population.weights(k) > 0.0)) continue;
    write.value(std::log(population.weights(k)));
    for (Index j = 0; j < d; ++j) write.value(population.means(k, j) / scale(j));
    if (population.kind == PopulationKind::full) {
      const Matrix L = root_of(population.matrices.middleRows(k * d, d), scale);
      for (Index i = 0; i < d; ++i) {
        for (Index j = 0; j < i; ++j) write.value(L(i, j));
        write.variance(L(i, i));
      }
      continue;
    }
    for (Index j = 0; j < d; ++j) {
      write.variance(population.variances(k, j) / (scale(j) * scale(j)));
      for (Index a = 0; a < population.n_factors(); ++a) write.value(population.factors(k * d + j, a) / scale(j));
    }
  }
  return ConstVectorMap(out.data(), static_cast<Index>(out.size()));
}

Vector information(const Population& population, const Vector& scale, double total_weight) {
  std::vector<double> out;
  const Index d = population.n_features();
  for (Index k = 0; k < population.n_components(); ++k) {
    if (!(population.weights(k) > 0.0)) continue;
    const double q = population.weights(k) * total_weight;
    out.push_back(q);
    const bool full = population.kind == PopulationKind::full;
    // The spread of each value that is left when those before it, or the factors, are known.
    Vector own(d);
    if (full) {
      own = root_of(population.matrices.middleRows(k * d, d), scale).diagonal().cwiseAbs2();
    } else {
      own = (population.variances.row(k).transpose().array() / scale.array().square()).max(smallest);
    }
    for (Index j = 0; j < d; ++j) out.push_back(q / own(j));
    for (Index i = 0; i < d; ++i) {
      if (full) {
        for (Index j = 0; j < i; ++j) out.push_back(q / own(i));
        out.push_back(2.0 * q);
      } else {
        out.push_back(0.5 * q);
        for (Index a = 0; a < population.n_factors(); ++a) out.push_back(q / own(i));
      }
    }
  }
  return ConstVectorMap(out.data(), static_cast<Index>(out.size()));
}

Population population_at(const Vector& coordinates, const Population& like, const Vector& scale) {
  Population out = like;
  Reader read(coordinates);
  const Index d = like.n_features();
  Matrix L = Matrix::Zero(d, d);
  double largest = -infinity;
  for (Index k = 0; k < like.n_components(); ++k) {
    if (!(like.weights(k) > 0.0)) continue;
    out.weights(k) = read.value();
    largest = std::max(largest, out.weights(k));
    for (Index j = 0; j < d; ++j) out.means(k, j) = read.value() * scale(j);
    if (like.kind == PopulationKind::full) {
      for (Index i = 0; i < d; ++i) {
        for (Index j = 0; j < i; ++j) L(i, j) = scale(i) * read.value();
        L(i, i) = scale(i) * read.variance();
      }
      linalg::multiply(L, L.transpose(), out.matrices.middleRows(k * d, d));
      continue;
    }
    for (Index j = 0; j < d; ++j) {
      out.variances(k, j) = read.variance() * scale(j) * scale(j);
      for (Index a = 0; a < like.n_factors(); ++a) out.factors(k * d + j, a) = read.value() * scale(j);
    }
  }
  for (Index k = 0; k < like.n_components(); ++k) {
    if (like.weights(k) > 0.0) out.weights(k) = std::exp(out.weights(k) - largest);
  }
  out.weights /= out.weights.sum();
  return out;
}

}  // namespace halosvm::maps
