#include "halosvm/check.hpp"
#include "lanes.hpp"
#include "rule.hpp"

#include <array>
#include <cmath>

namespace halosvm::kernels {
namespace {

/// The Mills ratio Phi(-t) / phi(t) for t >= 0, of any size.
double mills(double t) {
  const double u = t < normal_tail_end ? t : normal_tail_end;
  const NormalTail tail = normal_tail(u);
  // Beyond, 1 / (t + 1 / (t + 2 / (t + ...))).
  double fraction = 0.0;
  for (int k = 6; k > 0; --k) fraction = k / (t + fraction);
  return t < normal_tail_end ? tail.upper / tail.density : 1.0 / (t + fraction);
}

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
  const double gap = t - r;
  const bool far = gap > 0.0;
  const double beyond = mills(r + t);
  const NormalTail tail = normal_tail(far ? gap : 0.0);
  const double near_factor = inverse_root_two_pi * (mills(far ? 0.0 : -gap) + beyond);
  const double far_factor = (1.0 - tail.upper) + tail.density * beyond;
  if (v <= smallest) return {mu, 1.0};
  return {far ? mu - 0.5 * v : 0.5 * t * t, far ? far_factor : near_factor};
}

/// A product over the coordinates, which diagonal covariances leave independent.
class LaplacianRule final : public PairRule {
 public:
  Index block_rows() const override { return 64; }

  void fill(const Block& x, const Block& y, MatrixRef out) override {
    for (Index first = 0; first < y.count; first += lanes) {
      means_ = y.mean.middleRows(first, lanes).transpose();
      variances_ = y.variance.middleRows(first, lanes).transpose();
      for (Index i = 0; i < x.count; ++i) Eigen::Map<Pack>(out.row(i).data() + first) = panel(x, i);
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

  Matrix means_;
  Matrix variances_;
};

void require_diagonal(const Side& side) {
  check::require(side.low_rank() == nullptr && side.full() == nullptr, "kind",
                 std::string("laplacian needs zero, isotropic or diagonal covariances, not ") +
                     side.data().covariances().kind());
}

}  // namespace

std::unique_ptr<PairRule> make_laplacian_rule(const Side& x, const Side& y) {
  require_diagonal(x);
  require_diagonal(y);
  return std::make_unique<LaplacianRule>();
}

}  // namespace halosvm::kernels
