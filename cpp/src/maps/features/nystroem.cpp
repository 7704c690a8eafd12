// Nystroem features: moments of pairs of kernel sections come in, those of their combinations go out.

#include "halosvm/maps/nystroem.hpp"

#include "halosvm/core/check.hpp"
#include "halosvm/kernel/kernel.hpp"
#include "kernel/expansion/expansion.hpp"
#include "kernel/expansion/exponentials.hpp"
#include "kernel/scaling.hpp"
#include "linalg/multiply.hpp"
#include "maps/features/lift.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace halosvm {
namespace {

using kernels::Block;
using kernels::PairMoments;
using kernels::PairTile;
using kernels::Side;

/// Owns the memory it works in, hence one for each thread.
class Sections {
 public:
  Sections(const Matrix& projection, const Side& x, std::unique_ptr<PairMoments> moments, const FeatureTarget& out)
      : projection_(projection),
        x_(x),
        out_(out),
        moments_(std::move(moments)),
        lift_(x),
        sections_(projection.cols()),
        features_(projection.rows()) {}

  void run(Index row, Checkpoint& checkpoint) {
    block_.load(x_, row, 1);
    moments_->load(block_);
    if (out_.factors.wanted()) {
      set_gradients(checkpoint);
    } else {
      set_covariances(checkpoint);
    }
    const Index D = features_.size();
    linalg::multiply(projection_, sections_, features_);
    out_.means.write(row * D, features_.data(), D);
    if (out_.factors.wanted()) {
      const Matrix& factor = lift_.of(block_, 0, gradients_);
      out_.factors.write(row * factor.size(), factor.data(), factor.size());
      return;
    }
    if (!out_.variances.wanted() && !out_.matrices.wanted()) return;
    linalg::multiply(projection_, covariances_, half_);
    if (out_.variances.wanted()) {
      features_ = half_.cwiseProduct(projection_).rowwise().sum().cwiseMax(0.0);
      out_.variances.write(row * D, features_.data(), D);
    }
    if (out_.matrices.wanted()) {
      linalg::multiply(half_, projection_.transpose(), full_);
      half_ = 0.5 * (full_ + full_.transpose());
      half_.diagonal() = half_.diagonal().cwiseMax(0.0);
      out_.matrices.write(row * D * D, half_.data(), D * D);
    }
  }

 private:
  /// g_j = E h_j of the rows of a strip; what is below the range of numbers is 0.
  void set_sections(const Rows& rows) {
    for (Index i = 0; i < rows.count; ++i) sections_(rows.begin + i) = std::exp(-tile_.row_exponents(i));
  }

  /// E grad phi = -sum_j projection_j g_j a_j', D x n_features.
  void set_gradients(Checkpoint& checkpoint) {
    const Index m = sections_.size();
    const Index step = moments_->strip_rows();
    gradients_.setZero(projection_.rows(), x_.data().n_features());
    for (Index i = 0; i < m; i += step) {
      const Rows rows{i, std::min(step, m - i)};
      moments_->fill(rows, rows, tile_, checkpoint);
      set_sections(rows);
      half_ =
          projection_.middleCols(rows.begin, rows.count) * (-sections_.segment(rows.begin, rows.count)).asDiagonal();
      moments_->add_gradients(half_, gradients_);
    }
  }

  /// Cov(h_j, h_l) = g_j g_l (exp(first + rest) - 1).
  void set_covariances(Checkpoint& checkpoint) {
    const Index m = sections_.size();
    const Index step = moments_->strip_rows();
    covariances_.resize(m, m);
    for (Index i = 0; i < m; i += step) {
      const Rows rows{i, std::min(step, m - i)};
      for (Index j = i; j < m; j += step) {
        const Rows columns{j, std::min(step, m - j)};
        moments_->fill(rows, columns, tile_, checkpoint);
        if (i == j) set_sections(rows);
        add_tile(rows, columns);
      }
    }
  }

  void add_tile(const Rows& rows, const Rows& columns) {
    factors_ = tile_.column_exponents.unaryExpr([](double value) { return std::exp(-value); });
    const double* __restrict exponents = tile_.column_exponents.data();
    const double* __restrict factors = factors_.data();
    for (Index i = 0; i < rows.count; ++i) {
      double* __restrict first = tile_.first.row(i).data();
      const double* __restrict rest = tile_.rest.row(i).data();
      const double exponent = tile_.row_exponents(i);
      const double factor = std::exp(-exponent);
      for (Index j = 0; j < columns.count; ++j) {
        const double t = first[j] + rest[j];
        const double sum = exponent + exponents[j];
        const double product = factor * factors[j];
        // One exponential, because its factors may overflow where it does not; where a distance overflowed it is 0.
        const double far = kernels::exp_of_difference(sum, t) - product;
        const double near = product * (t + kernels::exp_without_two_terms(t));
        const double either = std::abs(t) < kernels::small ? near : far;
        first[j] = sum < infinity ? either : 0.0;
      }
    }
    covariances_.block(rows.begin, columns.begin, rows.count, columns.count) = tile_.first;
    if (rows.begin != columns.begin) {
      covariances_.block(columns.begin, rows.begin, columns.count, rows.count) = tile_.first.transpose();
    }
  }

  const Matrix& projection_;
  const Side& x_;
  const FeatureTarget& out_;
  std::unique_ptr<PairMoments> moments_;
  maps::Lift lift_;
  Block block_;
  PairTile tile_;
  Vector sections_;  ///< E h_j
  Vector features_;
  Vector factors_;
  Matrix covariances_;  ///< of the h_j
  Matrix gradients_;
  Matrix half_;
  Matrix full_;
};

}  // namespace

void nystroem_features(const NystroemMap& map, const Gaussians& X, const FeatureTarget& out,
                       const Execution& execution) {
  check::same_size("Z", map.Z.n_features(), "X", X.n_features(), "features");
  check::same_size("projection", map.projection.cols(), "Z", map.Z.n_samples(), "columns");
  check::require(map.projection.allFinite(), "projection", "must be finite");
  X.check_once(execution);
  map.Z.check_once(execution);
  check::require(!out.factors.wanted() || !out.variances.wanted(), "factors",
                 "have no variances beside them: what they leave is no diagonal matrix");
  const ExpectedKernel kernel{KernelKind::rbf, map.gamma};
  kernels::check_kernel(kernel, X.n_features());
  const Vector scale = kernels::scale_of(kernel);
  const Vector centre = kernels::centre_of(kernel, map.Z);
  const Side x(X, scale, centre);
  const Side z(map.Z, scale, centre);
  Block all;
  if (kernels::diagonal_moments(x, z)) all.load(z, 0, map.Z.n_samples());
  std::vector<std::unique_ptr<Sections>> works(static_cast<std::size_t>(thread_count(X.n_samples(), execution)));
  run_tasks(X.n_samples(), execution, [&](Index row, int slot, Checkpoint& checkpoint) {
    auto& work = works[static_cast<std::size_t>(slot)];
    if (!work) work = std::make_unique<Sections>(map.projection, x, kernels::make_moments(x, z, all), out);
    work->run(row, checkpoint);
  });
}

}  // namespace halosvm
