// Random Fourier features: blocks of Gaussians come in, expectations, variances, covariances and factors go out.

#include "halosvm/maps/fourier.hpp"

#include "halosvm/core/blocks.hpp"
#include "halosvm/core/check.hpp"
#include "kernel/lanes.hpp"
#include "linalg/multiply.hpp"
#include "maps/features/frequencies.hpp"
#include "maps/features/lift.hpp"
#include "maps/features/trigonometry.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace halosvm {
namespace maps {

Index block_rows_of(Index n_frequencies, Index vectors) {
  constexpr Index numbers = 8192;
  const Index rows = numbers / std::max<Index>(1, n_frequencies * vectors) / kernels::lanes * kernels::lanes;
  return std::clamp<Index>(rows, kernels::lanes, 128);
}

void check_map(const FourierMap& map, const Gaussians& X, const Execution& execution) {
  check::require(map.frequencies.allFinite(), "frequencies", "must be finite");
  check::require(map.phases.allFinite(), "phases", "must be finite");
  check::require(map.n_frequencies() > 0, "frequencies", "has 0 rows; one is needed");
  check::same_size("frequencies", map.frequencies.cols(), "X", X.n_features(), "columns");
  if (map.n_pairs() < 0) check::same_size("phases", map.phases.size(), "frequencies", map.n_frequencies(), "rows");
  X.check_once(execution);
}

namespace {

using kernels::Block;
using kernels::Side;

/// What the rows of all blocks share.
struct Shared {
  Shared(const FourierMap& map_in, const Gaussians& X)
      : map(map_in),
        one(Vector::Ones(1)),
        origin(Vector::Zero(X.n_features())),
        side(X, one, origin),
        transposed(map.frequencies.transpose()),
        squares(transposed.cwiseAbs2()),
        norms(map.frequencies.rowwise().squaredNorm()),
        scale(std::sqrt(2.0 / static_cast<double>(map.n_components()))) {}

  const FourierMap& map;
  Vector one;
  Vector origin;
  Side side;
  Matrix transposed;  ///< n_features x J
  Matrix squares;     ///< likewise
  Vector norms;       ///< |w_j|^2
  double scale;
};

/// Owns the memory it works in, hence one for each thread.
class Features {
 public:
  Features(const Shared& shared, const FeatureTarget& out)
      : shared_(shared), out_(out), lift_(shared.side), n_(shared.map.n_frequencies()), pairs_(shared.map.n_pairs()) {
    row_.resize(shared.map.n_components());
    second_.resize(shared.map.n_components());
  }

  void run(Index begin, Index count) {
    block_.load(shared_.side, begin, count);
    linalg::multiply(block_.mean, shared_.transposed, angles_);
    angles_.rightCols(n_ - pairs_).rowwise() += shared_.map.phases.transpose();
    set_variances();
    set_moments();
    for (Index i = 0; i < count; ++i) {
      write_means(begin + i, i);
      if (out_.factors.wanted()) {
        write_factors(begin + i, i);
      } else if (out_.variances.wanted()) {
        write_variances(begin + i, i);
      }
      if (out_.matrices.wanted()) write_matrix(begin + i, i);
    }
  }

 private:
  /// A_j = w_j'S w_j, in place of spreads_.
  void set_variances() {
    const Side& side = shared_.side;
    const Index rows = block_.mean.rows();
    if (side.isotropic() == nullptr && side.diagonal() == nullptr) {
      spreads_.setZero(rows, n_);
    } else if (block_.uniform()) {
      spreads_.noalias() = block_.variance.col(0) * shared_.norms.transpose();
    } else {
      linalg::multiply(block_.variance, shared_.squares, spreads_);
    }
    if (block_.rank > 0) {
      linalg::multiply(block_.factor, shared_.transposed, products_);
      for (Index a = 0; a < block_.rank; ++a) spreads_ += products_.middleRows(a * rows, rows).cwiseAbs2();
    }
    const Index d = block_.mean.cols();
    for (Index i = 0; side.full() != nullptr && i < block_.count; ++i) {
      linalg::multiply(block_.matrix.middleRows(i * d, d), shared_.transposed, products_);
      spreads_.row(i) = products_.cwiseProduct(shared_.transposed).colwise().sum().cwiseMax(0.0);
    }
  }

  /// cos u, sin u and e^(-A/2) - 1 of all numbers of the block.
  void set_moments() {
    const Index rows = angles_.rows();
    cosines_.resize(rows, n_);
    sines_.resize(rows, n_);
    decays_.resize(rows, n_);
    const double* __restrict u = angles_.data();
    const double* __restrict A = spreads_.data();
    double* __restrict c = cosines_.data();
    double* __restrict s = sines_.data();
    double* __restrict g = decays_.data();
    const Index size = angles_.size();
    if (angles_.cwiseAbs().maxCoeff() <= largest_angle) {
      for (Index k = 0; k < size; ++k) {
        const SineCosine of = sine_cosine(u[k]);
        c[k] = of.cosine;
        s[k] = of.sine;
      }
    } else {
      for (Index k = 0; k < size; ++k) {
        c[k] = std::cos(u[k]);
        s[k] = std::sin(u[k]);
      }
    }
    for (Index k = 0; k < size; ++k) g[k] = kernels::exp_of_minus_less_one(0.5 * A[k]);
  }

  void write_means(Index row, Index i) {
    const double* __restrict c = cosines_.row(i).data();
    const double* __restrict s = sines_.row(i).data();
    const double* __restrict g = decays_.row(i).data();
    double* __restrict to = row_.data();
    for (Index j = 0; j < n_; ++j) to[j] = shared_.scale * ((1.0 + g[j]) * c[j]);
    for (Index j = 0; j < pairs_; ++j) to[n_ + j] = shared_.scale * ((1.0 + g[j]) * s[j]);
    out_.means.write(row * row_.size(), row_.data(), row_.size());
  }

  /// Var of one feature over scale^2, from the sine of cos u and the cosine of sin u; g = e^(-A/2) - 1.
  static double variance(double g, double other) {
    const double decay = 1.0 + g;
    const double lost = -g * (2.0 + g);  // 1 - e^-A
    return 0.5 * (lost * (lost + 2.0 * (decay * decay) * (other * other)));
  }

  void write_variances(Index row, Index i) {
    const double* __restrict c = cosines_.row(i).data();
    const double* __restrict s = sines_.row(i).data();
    const double* __restrict g = decays_.row(i).data();
    double* __restrict to = row_.data();
    const double factor = shared_.scale * shared_.scale;
    for (Index j = 0; j < n_; ++j) to[j] = factor * variance(g[j], s[j]);
    for (Index j = 0; j < pairs_; ++j) to[n_ + j] = factor * variance(g[j], c[j]);
    out_.variances.write(row * row_.size(), row_.data(), row_.size());
  }

  /// Rows scale e^(-A/2) (-sin u, cos u) w'R, and what they leave of the variances.
  void write_factors(Index row, Index i) {
    const Matrix& lifted = lift_.of(block_, i, shared_.map.frequencies);
    const Index rank = lift_.rank();
    const double factor = shared_.scale * shared_.scale;
    latent_.resize(rank);
    for (Index j = 0; j < row_.size(); ++j) {
      const Index k = j < n_ ? j : j - n_;
      const double g = decays_(i, k);
      const double other = j < n_ ? sines_(i, k) : cosines_(i, k);
      const double slope = shared_.scale * ((1.0 + g) * (j < n_ ? -other : other));
      latent_ = slope * lifted.row(k).transpose();
      out_.factors.write((row * row_.size() + j) * rank, latent_.data(), rank);
      // The linear part is never above the whole, but for rounding.
      row_(j) = std::max(0.0, factor * variance(g, other) - latent_.squaredNorm());
    }
    if (out_.variances.wanted()) out_.variances.write(row * row_.size(), row_.data(), row_.size());
  }

  /// P = e+ + e- and M = e+ - e- of spec K.9 for all pairs, as products: with E = exp(|Q| - (A_j + A_k)/2) and
  /// g = exp(-|Q|) - 1 they are E g^2 and sign(Q) E (-g) (2 + g).
  void set_pairs(Index i) {
    const Index d = block_.mean.cols();
    if (shared_.side.full() != nullptr) {
      linalg::multiply(block_.matrix.middleRows(i * d, d), shared_.transposed, products_);
      linalg::multiply(shared_.map.frequencies, products_, even_);
    } else {
      const Matrix& lifted = lift_.of(block_, i, shared_.map.frequencies);
      linalg::multiply(lifted, lifted.transpose(), even_);
    }
    own_ = even_.diagonal().cwiseMax(0.0);
    odd_.resize(n_, n_);
    for (Index j = 0; j < n_; ++j) {
      double* __restrict even = even_.row(j).data();
      double* __restrict odd = odd_.row(j).data();
      const double* __restrict own = own_.data();
      const double first = own[j];
      for (Index k = 0; k < n_; ++k) {
        const double Q = even[k];
        const double size = Q < 0.0 ? -Q : Q;
        const double E = kernels::exp_of_minus(0.5 * (first + own[k]) - size);
        const double g = kernels::exp_of_minus_less_one(size);
        even[k] = E * (g * g);
        const double M = E * (-g * (2.0 + g));
        odd[k] = Q < 0.0 ? -M : M;
      }
    }
  }

  /// Cov(cos_j, cos_k) = 1/2 (c c P + s s M), Cov(sin_j, sin_k) = 1/2 (c c M + s s P), Cov(cos_j, sin_k) =
  /// 1/2 (c_j s_k P - s_j c_k M), times scale^2.
  void write_matrix(Index row, Index i) {
    set_pairs(i);
    const Index D = row_.size();
    const double factor = 0.5 * shared_.scale * shared_.scale;
    const double* __restrict c = cosines_.row(i).data();
    const double* __restrict s = sines_.row(i).data();
    for (Index j = 0; j < n_; ++j) {
      const double* __restrict P = even_.row(j).data();
      const double* __restrict M = odd_.row(j).data();
      double* __restrict of_cosine = row_.data();
      double* __restrict of_sine = second_.data();
      const double cosine = factor * c[j];
      const double sine = factor * s[j];
      for (Index k = 0; k < n_; ++k) of_cosine[k] = cosine * c[k] * P[k] + sine * s[k] * M[k];
      for (Index k = 0; k < pairs_; ++k) of_cosine[n_ + k] = cosine * s[k] * P[k] - sine * c[k] * M[k];
      if (j < pairs_) {
        for (Index k = 0; k < n_; ++k) of_sine[k] = sine * c[k] * P[k] - cosine * s[k] * M[k];
        for (Index k = 0; k < pairs_; ++k) of_sine[n_ + k] = cosine * c[k] * M[k] + sine * s[k] * P[k];
        out_.matrices.write((row * D + n_ + j) * D, second_.data(), D);
      }
      out_.matrices.write((row * D + j) * D, row_.data(), D);
    }
  }

  const Shared& shared_;
  const FeatureTarget& out_;
  Lift lift_;
  Index n_;
  Index pairs_;
  Block block_;
  Matrix angles_, spreads_, products_, cosines_, sines_, decays_;
  Matrix even_, odd_;
  Vector row_, second_, latent_, own_;
};

}  // namespace
}  // namespace maps

void fourier_features(const FourierMap& map, const Gaussians& X, const FeatureTarget& out, const Execution& execution) {
  maps::check_map(map, X, execution);
  const maps::Shared shared(map, X);
  const Index vectors = std::max<Index>(1, shared.side.full() != nullptr ? X.n_features() : shared.side.rank());
  const Index block_rows = maps::block_rows_of(map.n_frequencies(), vectors);
  for_each_block(
      X.n_samples(), block_rows, execution, [&] { return std::make_unique<maps::Features>(shared, out); },
      [](maps::Features& features, Index begin, Index count) { features.run(begin, count); });
}

}  // namespace halosvm
