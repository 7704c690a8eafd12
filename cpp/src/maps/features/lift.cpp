// Covariances of any kind come in, their roots as linear maps see them go out, and the lengths of steps in a ball.

#include "maps/features/lift.hpp"

#include "halosvm/core/blocks.hpp"
#include "halosvm/core/check.hpp"
#include "kernel/lanes.hpp"
#include "linalg/multiply.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace halosvm {
namespace maps {
namespace {

/// Of a side, for one row: some milliseconds.
constexpr Index largest_order = 256;

}  // namespace

Lift::Lift(const kernels::Side& side)
    : side_(side),
      has_variances_(side.isotropic() != nullptr || side.diagonal() != nullptr),
      rank_(side.full() != nullptr || has_variances_ ? side.data().n_features() : 0) {
  rank_ += side.rank();
}

const Matrix& Lift::of(const kernels::Block& block, Index i, const Matrix& W) {
  const Index d = W.cols();
  lifted_.resize(W.rows(), rank_);
  if (side_.full() != nullptr) {
    eigen_.compute(block.matrix.middleRows(i * d, d).transpose());  // in column-major order without a copy
    root_ = eigen_.vectors() * eigen_.values().cwiseMax(0.0).cwiseSqrt().asDiagonal();
    linalg::multiply(W, root_, lifted_);
    return lifted_;
  }
  Index at = 0;
  if (has_variances_) {
    if (block.uniform()) {
      lifted_.leftCols(d) = std::sqrt(block.variance(i, 0)) * W;
    } else {
      lifted_.leftCols(d) = W * block.variance.row(i).cwiseSqrt().asDiagonal();
    }
    at = d;
  }
  const Index padded = kernels::padded(block.count);
  for (Index a = 0; a < rank_ - at; ++a) {
    if (a < block.rank) {
      lifted_.col(at + a).noalias() = W * block.factor.row(a * padded + i).transpose();
    } else {
      lifted_.col(at + a).setZero();
    }
  }
  return lifted_;
}

bool SpectralNorm::affordable(const Matrix& L) { return std::min(L.rows(), L.cols()) <= largest_order; }

void SpectralNorm::multiply(const Matrix& L) {
  const bool wide = L.rows() < L.cols();
  if (wide) turned_ = L.transpose();
  const Matrix& tall = wide ? turned_ : L;
  linalg::multiply(tall.transpose(), tall, products_);
}

double SpectralNorm::bound(const Matrix& L) {
  if (L.size() == 0) return 0.0;
  multiply(L);
  eigen_.compute_values(products_);
  const double largest = std::max(0.0, eigen_.values()(products_.rows() - 1));
  return std::sqrt(largest) * (1.0 + 1e-12);
}

double SpectralNorm::rough_bound(const Matrix& L) {
  multiply(L);
  return std::sqrt(products_.norm()) * (1.0 + 1e-12);
}

double dual_norm(const Eigen::Ref<const Eigen::RowVectorXd>& l, double p) {
  if (l.size() == 0) return 0.0;
  if (p == 1.0) return l.cwiseAbs().maxCoeff();
  return p == 2.0 ? l.norm() : l.cwiseAbs().sum();
}

double euclidean_excess(double p, Index dimensions) {
  return p > 2.0 ? std::sqrt(static_cast<double>(dimensions)) : 1.0;
}

namespace {

/// Lengths of the longest steps R u.
class Steps {
 public:
  Steps(const kernels::Side& side, const InputBall& ball)
      : side_(side),
        ball_(ball),
        unit_(Matrix::Identity(side.data().n_features(), side.data().n_features())),
        lift_(side) {}

  void write(Index begin, Index count, VectorRef out) {
    block_.load(side_, begin, count);
    for (Index i = 0; i < count; ++i) out(begin + i) = ball_.radius * of(lift_.of(block_, i, unit_));
  }

 private:
  /// max |R u| over |u|_p <= 1.
  double of(const Matrix& R) {
    if (R.cols() == 0) return 0.0;
    if (ball_.norm == 1.0) return R.colwise().norm().maxCoeff();
    double step = SpectralNorm::affordable(R) ? norm_.bound(R) : norm_.rough_bound(R);
    if (ball_.norm == 2.0) return step;
    step *= euclidean_excess(ball_.norm, R.cols());
    // Columns of diag(sd) are orthogonal, which makes the corners of a box the farthest.
    const bool box = side_.rank() == 0;
    return std::min(step, box ? R.norm() : R.colwise().norm().sum());
  }

  const kernels::Side& side_;
  const InputBall& ball_;
  Matrix unit_;
  Lift lift_;
  SpectralNorm norm_;
  kernels::Block block_;
};

}  // namespace
}  // namespace maps

Index latent_rank(const Gaussians& X) {
  const Vector one = Vector::Ones(1);
  const Vector zero = Vector::Zero(X.n_features());
  return maps::Lift(kernels::Side(X, one, zero)).rank();
}

void InputBall::check(const Gaussians& X) const {
  if (!(radius >= 0.0 && radius < infinity)) {
    check::fail("radius", "is " + check::text(radius) + "; it must be finite and >= 0");
  }
  if (norm != 1.0 && norm != 2.0 && norm != infinity) {
    check::fail("norm", "is " + check::text(norm) + "; it must be 1, 2 or infinity");
  }
  check::require(norm == 2.0 || dynamic_cast<const FullCovariances*>(&X.covariances()) == nullptr, "norm",
                 "is " + check::text(norm) + ", for which full covariances have no root of their own; give factors");
}

void largest_steps(const Gaussians& X, const Vector& scale, const InputBall& ball, VectorRef out,
                   const Execution& execution) {
  if (scale.size() != 1) check::same_size("scale", scale.size(), "X", X.n_features(), "features");
  check::require((scale.array() >= 0.0).all() && scale.allFinite(), "scale", "must be >= 0 and finite");
  check::same_size("out", out.size(), "X", X.n_samples(), "rows");
  X.check_once(execution);
  ball.check(X);
  const Vector zero = Vector::Zero(X.n_features());
  const kernels::Side side(X, scale, zero);
  if (side.uniform() && side.rank() == 0 && side.full() == nullptr && ball.norm == 2.0) {
    // |R| is one standard deviation: no matrix is needed.
    Vector scratch(1);
    for (Index i = 0; i < X.n_samples(); ++i) {
      const double t =
          side.isotropic() == nullptr ? 0.0 : side.isotropic()->variances().block({i, 1}, scratch.data())(0, 0);
      out(i) = ball.radius * scale(0) * std::sqrt(t);
    }
    return;
  }
  for_each_block(
      X.n_samples(), 8, execution, [&] { return std::make_unique<maps::Steps>(side, ball); },
      [&](maps::Steps& steps, Index begin, Index count) { steps.write(begin, count, out); });
}

}  // namespace halosvm
