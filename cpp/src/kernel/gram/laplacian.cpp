// The expected Laplacian kernel of diagonal covariances, coordinate by coordinate.

#include "halosvm/core/check.hpp"
#include "kernel/lanes.hpp"
#include "kernel/rule.hpp"

#include <cmath>
#include <string>

namespace halosvm::kernels {
namespace {

/// One coordinate: E exp(-|mu + r Z|) = exp(-exponent) * factor, mu >= 0.
struct Coordinate {
  double exponent;
  double factor;
};

/// With the Mills ratio R and t = mu / r: exp(-t^2/2) [R(r - t) + R(r + t)] / sqrt(2 pi) for t <= r, else
/// exp(v/2 - mu) [Phi(t - r) + phi(t - r) R(r + t)].
Coordinate coordinate(double mu, double v) {
  constexpr double inverse_root_two_pi = 0.39894228040143267794;
  constexpr double smallest = 1e-280;
  const double r = std::sqrt(v > smallest ? v : smallest);
  const double t = mu / r;
  const bool far = t > r;
  const double gap = far ? t - r : r - t;
  const double beyond = mills_ratio(r + t);
  const double within = mills_ratio(gap);
  const double factor = far ? 1.0 + inverse_root_two_pi * exp_of_minus(0.5 * gap * gap) * (beyond - within)
                            : inverse_root_two_pi * (beyond + within);
  const double exponent = far ? mu - 0.5 * v : 0.5 * t * t;
  const bool certain = v <= smallest;
  return {certain ? mu : exponent, certain ? 1.0 : factor};
}

/// A product over the coordinates, which diagonal covariances leave independent.
class LaplacianRule final : public PairRule {
 public:
  explicit LaplacianRule(bool certain) : certain_(certain) {}
  Index block_rows() const override { return 64; }

  void fill(const Block& x, const Block& y, MatrixRef out, Checkpoint& checkpoint) override {
    for (Index first = 0; first < y.count; first += lanes) {
      checkpoint();
      means_ = y.mean.middleRows(first, lanes).transpose();
      variances_ = y.variance.middleRows(first, lanes).transpose();
      for (Index i = 0; i < x.count; ++i) {
        Eigen::Map<Pack>(out.row(i).data() + first) = certain_ ? distances(x, i) : panel(x, i);
      }
    }
  }

 private:
  Pack panel(const Block& x, Index i) const {
    const bool uniform = variances_.rows() == 1;
    Pack exponent = Pack::Zero();
    LogProduct product;
    for (Index k = 0; k < x.mean.cols(); ++k) {
      const Pack mu = (load(means_.row(k).data()) - x.mean(i, k)).abs();
      const Pack v = load(variances_.row(uniform ? 0 : k).data()) + x.variance(i, x.uniform() ? 0 : k);
      Pack own;
      Pack factor;
      for (Index l = 0; l < lanes; ++l) {
        const Coordinate one = coordinate(mu[l], v[l]);
        own[l] = one.exponent;
        factor[l] = one.factor;
      }
      exponent += own;
      product.multiply(factor);
      product.normalise();
    }
    return exponent - product.log();
  }

  Pack distances(const Block& x, Index i) const {
    Pack sum = Pack::Zero();
    for (Index k = 0; k < x.mean.cols(); ++k) sum += (load(means_.row(k).data()) - x.mean(i, k)).abs();
    return sum;
  }

  bool certain_;
  Matrix means_;
  Matrix variances_;
};

void require_diagonal(const Side& side) {
  check::require(
      side.low_rank() == nullptr && side.full() == nullptr, "kind",
      std::string("laplacian needs zero, isotropic or diagonal covariances, not ") + side.data().covariances().kind());
}

}  // namespace

std::unique_ptr<PairRule> make_laplacian_rule(const Side& x, const Side& y) {
  require_diagonal(x);
  require_diagonal(y);
  return std::make_unique<LaplacianRule>(x.certain() && y.certain());
}

}  // namespace halosvm::kernels
