// How far the Fourier features of a bounded input can move (spec G.5): balls of inputs come in, radii go out.

#include "halosvm/maps/fourier.hpp"

#include "halosvm/core/blocks.hpp"
#include "halosvm/core/check.hpp"
#include "maps/features/frequencies.hpp"
#include "kernel/lanes.hpp"
#include "maps/features/lift.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace halosvm {
namespace maps {
namespace {

constexpr double pi = 3.14159265358979323846;

double square(double x) { return x * x; }

/// max |cos(u + t) - cos u| over |t| <= theta.
double largest_change(double u, double theta) {
  const double v = std::abs(std::remainder(u, 2.0 * pi));
  const double highest = theta >= v ? 1.0 : std::cos(v - theta);
  const double lowest = v + theta >= pi ? -1.0 : std::cos(v + theta);
  const double own = std::cos(v);
  return std::max(highest - own, own - lowest);
}

class Bounds {
 public:
  Bounds(const FourierMap& map, const kernels::Side& side, const InputBall& ball, bool printed)
      : map_(map), side_(side), ball_(ball), printed_(printed), lift_(side), thetas_(map.n_frequencies()) {
    if (!printed) own_norm_ = norm_.bound(map.frequencies);
    if (!isotropic()) return;
    for (Index j = 0; j < thetas_.size(); ++j) thetas_(j) = dual_norm(map.frequencies.row(j), ball.norm);
    units_ = thetas_;
  }

  /// The bounds of consecutive rows.
  void write(Index begin, Index count, VectorRef out) {
    block_.load(side_, begin, count);
    for (Index i = 0; i < count; ++i) out(begin + i) = of(block_, i);
  }

 private:
  double of(const kernels::Block& block, Index i) {
    double norm = 0.0;
    if (isotropic()) {
      const double deviation = std::sqrt(block.variance(i, 0));
      thetas_ = ball_.radius * deviation * units_;
      norm = deviation * own_norm_;
    } else {
      const Matrix& lifted = lift_.of(block, i, map_.frequencies);
      for (Index j = 0; j < thetas_.size(); ++j) thetas_(j) = ball_.radius * dual_norm(lifted.row(j), ball_.norm);
      if (!printed_) norm = spectral_norm(lifted, block, i);
    }
    if (printed_) return by_print();
    const double reach = ball_.radius * euclidean_excess(ball_.norm, lift_.rank()) * norm;
    return std::min(by_frequency(block, i), joint(reach));
  }

  bool isotropic() const { return side_.uniform() && side_.rank() == 0 && side_.full() == nullptr; }

  /// |W R|, of wide data a bound: |W| |R| is exact for equal variances.
  double spectral_norm(const Matrix& lifted, const kernels::Block& block, Index i) {
    if (SpectralNorm::affordable(lifted)) return norm_.bound(lifted);
    double squared = 0.0;
    if (side_.full() != nullptr) {
      const Index d = block.mean.cols();
      squared = block.matrix.middleRows(i * d, d).norm();
    } else {
      if (lift_.has_variances()) squared = block.variance.row(i).maxCoeff();
      const Index padded = kernels::padded(block.count);
      for (Index a = 0; a < block.rank; ++a) squared += block.factor.row(a * padded + i).squaredNorm();
    }
    return std::min(norm_.rough_bound(lifted), own_norm_ * std::sqrt(squared));
  }

  /// |R dphi| <= sqrt((4/D) sum min(2, theta^2 / 2)), printed for pairs, whose square is 2 (1 - cos t); that of a
  /// cosine without its sine, |cos(u + t) - cos u|^2, is at most the same.
  double by_print() const {
    double sum = 0.0;
    for (Index j = 0; j < thetas_.size(); ++j) sum += std::min(2.0, 0.5 * square(thetas_(j)));
    return std::sqrt(4.0 / static_cast<double>(map_.n_components()) * sum);
  }

  double by_frequency(const kernels::Block& block, Index i) const {
    double sum = 0.0;
    for (Index j = 0; j < thetas_.size(); ++j) {
      if (j < map_.n_pairs()) {
        sum += 4.0 * square(std::sin(0.5 * std::min(thetas_(j), pi)));  // 2 (1 - cos)
      } else {
        const double angle = map_.frequencies.row(j).dot(block.mean.row(i)) + map_.phases(j - map_.n_pairs());
        sum += square(largest_change(angle, thetas_(j)));
      }
    }
    return std::sqrt(2.0 / static_cast<double>(map_.n_components()) * sum);
  }

  /// 1 - cos(sqrt u) is concave on [0, pi^2], so that the mean over the J frequencies is largest where all are the
  /// same: sqrt((4 J / D) (1 - cos angle)).
  double joint(double reach) const {
    const double angle = std::min(pi, reach / std::sqrt(static_cast<double>(thetas_.size())));
    const double share = static_cast<double>(map_.n_frequencies()) / static_cast<double>(map_.n_components());
    return std::sqrt(8.0 * share) * std::sin(0.5 * angle);
  }

  const FourierMap& map_;
  const kernels::Side& side_;
  const InputBall& ball_;
  bool printed_;
  kernels::Block block_;
  Lift lift_;
  SpectralNorm norm_;
  Vector thetas_;
  Vector units_;           ///< of a standard deviation of 1
  double own_norm_ = 0.0;  ///< |W|
};

}  // namespace
}  // namespace maps

void fourier_bound(const FourierMap& map, const Gaussians& X, const InputBall& ball, bool printed, VectorRef out,
                   const Execution& execution) {
  maps::check_map(map, X, execution);
  check::same_size("out", out.size(), "X", X.n_samples(), "rows");
  ball.check(X);
  const Vector one = Vector::Ones(1);
  const Vector origin = Vector::Zero(X.n_features());
  const kernels::Side side(X, one, origin);
  for_each_block(
      X.n_samples(), 8, execution, [&] { return std::make_unique<maps::Bounds>(map, side, ball, printed); },
      [&](maps::Bounds& bounds, Index begin, Index count) { bounds.write(begin, count, out); });
}

}  // namespace halosvm
