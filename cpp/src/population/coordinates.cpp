// Coordinates of a population: a population and its sums enter, a point and the slope of the objective leave, and back.

#include "population/coordinates.hpp"

#include "linalg/multiply.hpp"
#include "population/offsets.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halosvm::population {
namespace {

constexpr double smallest = 1e-60;  // part of the unit of a variance that counts as one

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
  const Index d = population.n_features();
  bool known = false;
  for (Index k = 0; k < population.n_components(); ++k) {
    if (!(population.weights(k) > 0.0)) continue;
    out.push_back(std::log(population.weights(k)));
    for (Index j = 0; j < d; ++j) out.push_back(population.means(k, j) / scale(j));
    if (known) continue;
    known = population.tied;
    if (population.kind == PopulationKind::full) {
      const Matrix L = root_of(population.matrices.middleRows(k * d, d), scale);
      for (Index i = 0; i < d; ++i) {
        for (Index j = 0; j <= i; ++j) out.push_back(L(i, j));
      }
      continue;
    }
    for (Index j = 0; j < d; ++j) {
      out.push_back(std::sqrt(population.variances(k, j)) / scale(j));
      for (Index a = 0; a < population.n_factors(); ++a) out.push_back(population.factors(k * d + j, a) / scale(j));
    }
  }
  append_offset_coordinates(population, scale, out);
  return ConstVectorMap(out.data(), static_cast<Index>(out.size()));
}

namespace {

class SlopeWriter {
 public:
  SlopeWriter(const Population& population, const Statistics& sums, const Prior& prior, const Vector& scale)
      : population_(population), sums_(sums), prior_(prior), scale_(scale), d_(population.n_features()) {}

  Slope run() {
    for (Index k = 0; k < population_.n_components(); ++k) {
      if (HeldParts::of(population_.held.weights, k)) continue;
      free_mass_ += sums_.mass(k);
      free_weight_ += population_.weights(k);
    }
    for (Index k = 0; k < population_.n_components(); ++k) {
      if (!(population_.weights(k) > 0.0)) continue;
      at_ = no_place;
      q_ = std::max(sums_.mass(k), smallest);
      free_ = !HeldParts::of(population_.held.weights, k);
      add(sums_.mass(k) - free_mass_ * population_.weights(k) / free_weight_, q_);
      free_ = !HeldParts::of(population_.held.means, k);
      precision_ = sums_.precision.row(k).transpose().cwiseProduct(scale_.cwiseAbs2());
      if (population_.kind == PopulationKind::full) {
        add_full(k);
      } else {
        add_latent(k);
      }
    }
    const auto n = static_cast<Index>(rise_.size());
    return {ConstVectorMap(rise_.data(), n), ConstVectorMap(curvature_.data(), n)};
  }

 private:
  void add(double rise, double curvature) {
    // Where the data tell nothing, as of a feature without values, the slope is 0, too.
    constexpr double least = 1e-8;
    curvature = std::max(curvature, least * q_);
    if (!free_) rise = 0.0;
    if (at_ == no_place) {
      rise_.push_back(rise);
      curvature_.push_back(curvature);
      return;
    }
    rise_[at_] += rise;
    curvature_[at_++] += curvature;
  }

  /// The coordinates of V come next; tied components add up there.
  void begin_shape(Index k) {
    free_ = !HeldParts::of(population_.held.covariances, k);
    if (shape_ != no_place) at_ = shape_;
    if (population_.tied && shape_ == no_place) shape_ = rise_.size();
  }

  /// V = C C'. d/dV is half the curvature G = sum w w' - T^-1, and that of the prior half of V^-1 W V^-1 - nu V^-1. The
  /// second derivative in a column c of C is G, which is 0 where V is free and not where it is pressed to 0, less about
  /// T^-1 (c'T^-1 c).
  void add_full(Index k) {
    const Matrix L = root_of(population_.matrices.middleRows(k * d_, d_), scale_);
    const Matrix C = scale_.asDiagonal() * L;
    const Matrix G = sums_.curvature.middleRows(k * d_, d_);
    Matrix rise = linalg::product(G, C);
    if (prior_.any()) {
      Matrix inverse = C;
      invert_lower(inverse);
      Matrix scatter = linalg::product(linalg::product(inverse, prior_.whole()), inverse.transpose());
      scatter.diagonal().array() -= prior_.weight;
      linalg::add_product(inverse.transpose(), scatter, rise);
    }
    // How much of T, on the way of each column, is V.
    const Matrix squares = L.cwiseAbs2();
    const Vector part = (linalg::product<Vector>(squares.transpose(), precision_) / q_).cwiseMin(1.0);
    for (Index j = 0; j < d_; ++j) add(sums_.pull(k, j) * scale_(j), precision_(j));
    begin_shape(k);
    for (Index i = 0; i < d_; ++i) {
      const double pressed = std::abs(G(i, i)) * scale_(i) * scale_(i);
      for (Index j = 0; j < i; ++j) add(rise(i, j) * scale_(i), precision_(i) * part(j) + pressed);
      add(rise(i, i) * scale_(i), 2.0 * precision_(i) * part(i) + pressed + of_prior(i, L(i, i)));
    }
  }

  /// What the complete data would tell, averaged over the posteriors (Fisher's identity).
  void add_latent(Index k) {
    const Index h = population_.n_factors();
    Matrix L(d_, h);
    if (h > 0) L = population_.factors.middleRows(k * d_, d_);
    Moments moments{Vector::Zero(d_), Vector::Zero(d_), Vector::Zero(h), Matrix::Zero(d_, h), Matrix::Zero(h, h)};
    if (sums_.mass(k) > 0.0) moments = moments_of(population_, sums_, k);
    const Matrix cross = moments.cross - linalg::product(L, moments.square);
    const Vector shift = moments.shift - linalg::product<Vector>(L, moments.latent);
    for (Index j = 0; j < d_; ++j) add(per_variance(k, j, q_ * shift(j) * scale_(j)), precision_(j));
    begin_shape(k);
    for (Index j = 0; j < d_; ++j) {
      const double sd = std::max(std::sqrt(population_.variances(k, j)) / scale_(j), smallest);
      const double spread = moments.spread(j) - L.row(j).dot(moments.cross.row(j)) - L.row(j).dot(cross.row(j));
      const double excess = per_variance(k, j, q_ * spread) - q_;
      const double part = std::min(sd * sd * precision_(j) / q_, 1.0);
      add((excess + per_variance(k, j, prior_.scatter(j)) - prior_.weight) / sd,
          2.0 * precision_(j) * part + std::abs(excess) / (sd * sd) + of_prior(j, sd));
      for (Index a = 0; a < h; ++a) {
        add(per_variance(k, j, q_ * cross(j, a) * scale_(j)), precision_(j) * moments.square(a, a));
      }
    }
  }

  double per_variance(Index k, Index j, double x) const {
    return population_.variances(k, j) > 0.0 ? x / population_.variances(k, j) : 0.0;
  }

  /// Second derivative of W / (2 V) in a standard deviation in units of the scale.
  double of_prior(Index j, double sd) const {
    const double square = sd * sd * scale_(j);
    const bool full = population_.kind == PopulationKind::full && prior_.is_matrix();
    return 3.0 * (prior_.scatter(j) + (full ? prior_.matrix(j, j) : 0.0)) / (square * square);
  }

  const Population& population_;
  const Statistics& sums_;
  const Prior& prior_;
  const Vector& scale_;
  Index d_;
  double q_ = 0.0;                              ///< mass of the component
  bool free_ = true;                            ///< whether the next coordinates are not held
  double free_mass_ = 0.0, free_weight_ = 0.0;  ///< of components whose weight is not held
  Vector precision_;                            ///< its summed diagonals of T^-1, in units of the scale
  std::vector<double> rise_, curvature_;
  static constexpr std::size_t no_place = std::numeric_limits<std::size_t>::max();
  std::size_t at_ = no_place;     ///< where the next coordinate adds up, or behind all
  std::size_t shape_ = no_place;  ///< where those of a tied V begin
};

}  // namespace

Slope slope(const Population& population, const Statistics& sums, const Prior& prior, const Vector& scale) {
  Slope out = SlopeWriter(population, sums, prior, scale).run();
  append_offset_slope(population, sums.offsets, prior, scale, out);
  return out;
}

Population population_at(const Vector& coordinates, const Population& like, const Vector& scale) {
  Population out = like;
  const double* next = coordinates.data();
  const Index d = like.n_features();
  Matrix L = Matrix::Zero(d, d);
  double largest = -infinity;
  Index shape = -1;
  for (Index k = 0; k < like.n_components(); ++k) {
    if (!(like.weights(k) > 0.0)) continue;
    out.weights(k) = *next++;
    largest = std::max(largest, out.weights(k));
    for (Index j = 0; j < d; ++j) out.means(k, j) = *next++ * scale(j);
    if (HeldParts::of(like.held.means, k)) out.means.row(k) = like.means.row(k);
    if (like.tied && shape >= 0) {
      out.take_shape(k, shape);
      continue;
    }
    shape = k;
    if (like.kind == PopulationKind::full) {
      for (Index i = 0; i < d; ++i) {
        for (Index j = 0; j <= i; ++j) L(i, j) = scale(i) * *next++;
      }
      linalg::multiply(L, L.transpose(), out.matrices.middleRows(k * d, d));
      continue;
    }
    for (Index j = 0; j < d; ++j) {
      out.variances(k, j) = std::pow(*next++ * scale(j), 2);
      for (Index a = 0; a < like.n_factors(); ++a) out.factors(k * d + j, a) = *next++ * scale(j);
    }
  }
  read_offset_coordinates(next, scale, out);
  for (Index k = 0; k < like.n_components(); ++k) {
    if (like.weights(k) > 0.0) out.weights(k) = std::exp(out.weights(k) - largest);
  }
  out.weights /= out.weights.sum();
  keep_held_weights(out, like);
  for (Index k = 0; k < like.n_components(); ++k) {
    if (HeldParts::of(like.held.covariances, k)) out.take_shape(k, like, k);
  }
  bury_dead(out);
  return out;
}

}  // namespace halosvm::population
