// Covariances of any kind come in, their roots as linear maps see them go out, and the lengths of steps in a ball.

#include "maps/features/lift.hpp"

#include "halosvm/core/check.hpp"
#include "kernel/lanes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

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
    lifted_.noalias() = W * root_;
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
  products_.noalias() = tall.transpose() * tall;
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
  const Matrix unit = Matrix::Identity(X.n_features(), X.n_features());
  struct Work {
    explicit Work(const kernels::Side& side) : lift(side) {}
    maps::Lift lift;
    maps::SpectralNorm norm;
    kernels::Block block;
  };
  constexpr Index block_rows = 8;
  const Chunks chunks(X.n_samples(), block_rows);
  std::vector<std::unique_ptr<Work>> works(static_cast<std::size_t>(thread_count(chunks.count(), execution)));
  run_tasks(chunks.count(), execution, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    auto& work = works[static_cast<std::size_t>(slot)];
    if (!work) work = std::make_unique<Work>(side);
    for (Index begin = chunks.begin(chunk); begin < chunks.end(chunk); begin += block_rows) {
      checkpoint();
      work->block.load(side, begin, std::min(block_rows, chunks.end(chunk) - begin));
      for (Index i = 0; i < work->block.count; ++i) {
        const Matrix& R = work->lift.of(work->block, i, unit);
        double step = 0.0;
        if (ball.norm == 1.0) {
          step = R.cols() > 0 ? R.colwise().norm().maxCoeff() : 0.0;
        } else {
          const bool exact = maps::SpectralNorm::affordable(R);
          step = exact ? work->norm.bound(R) : work->norm.rough_bound(R);
          step *= maps::euclidean_excess(ball.norm, R.cols());
          if (ball.norm > 2.0) {
            // Columns of diag(sd) are orthogonal, which makes the corners of a box the farthest.
            const bool box = side.rank() == 0;
            step = std::min(step, box ? R.norm() : R.colwise().norm().sum());
          }
        }
        out(begin + i) = ball.radius * step;
      }
    }
  });
}

}  // namespace halosvm
