// The expected Gaussian kernel of zero, isotropic and diagonal covariances.

#include "kernel/lanes.hpp"
#include "kernel/rule.hpp"
#include "linalg/multiply.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace halosvm::kernels {
namespace {

/// Zero and isotropic covariances: one matrix product, and a few operations for each pair.
class RoundRule final : public PairRule {
 public:
  explicit RoundRule(bool certain) : certain_(certain) {}
  Index block_rows() const override { return 192; }

  void fill(const Block& x, const Block& y, MatrixRef out, Checkpoint& checkpoint) override {
    checkpoint();
    squared_distances(x, y, out);
    const double half_features = 0.5 * static_cast<double>(x.mean.cols());
    for (Index i = 0; i < out.rows(); ++i) {
      double* __restrict row = out.row(i).data();
      if (certain_) {
        for (Index j = 0; j < out.cols(); ++j) row[j] *= 0.5;
        continue;
      }
      const double own = x.variance(i, 0);
      const double* variance = y.variance.data();
      for (Index j = 0; j < out.cols(); ++j) {
        const double v = own + variance[j];
        row[j] = half_features * log_of_one_plus(v) + 0.5 * row[j] / (1.0 + v);
      }
    }
  }

 private:
  bool certain_;
};

/// A power of two that four factors of a determinant may have each.
constexpr double largest_factor = 0x1p250;

/// Features that a group holds, with one division for all of them.
constexpr Index group = 4;

/// Diagonal covariances, of one side at least. With a_k = 1 + v_k, the sum of d_k^2 / a_k over four features is one
/// fraction; its denominator is their part of the determinant.
class DiagonalRule final : public PairRule {
 public:
  explicit DiagonalRule(const Side& x, const Side& y) : x_certain_(x.certain()), y_certain_(y.certain()) {}
  Index block_rows() const override { return 64; }

  void fill(const Block& x, const Block& y, MatrixRef out, Checkpoint& checkpoint) override {
    width_ = (x.mean.cols() + group - 1) / group * group;
    const double largest = 1.0 + x.variance.maxCoeff() + y.variance.maxCoeff();
    if (largest > largest_factor) {
      fill_carefully(x, y, out);
      return;
    }
    // Groups until a product below 2 may come close to overflow.
    steps_ = std::max<Index>(1, static_cast<Index>(1000.0 / (group * std::max(1.0, std::log2(largest)))));
    copy_rows(x);
    for (Index first = 0; first < y.count; first += lanes) {
      checkpoint();
      copy_panel(y, first);
      for (Index i = 0; i < x.count; ++i) {
        Eigen::Map<Pack> to(out.row(i).data() + first);
        if (y_certain_) {
          to = weighted([&](Index k) { return Pack::Constant(own_weights_(i, k)); }, i) + own_logs_(i);
        } else if (x_certain_) {
          to = weighted([&](Index k) { return load(panel_weights_.data() + k * lanes); }, i) + panel_logs_;
        } else {
          to = combined(i);
        }
      }
    }
  }

 private:
  /// 1/2 (quadratic form + log determinant) of row i and the eight rows of the panel.
  Pack combined(Index i) const {
    const double* mean = own_means_.row(i).data();
    const double* factor = own_factors_.row(i).data();
    const double* other = panel_means_.data();
    const double* variance = panel_variances_.data();
    Pack quadratic = Pack::Zero();
    LogProduct determinant;
    Index left = steps_;
    for (Index k = 0; k < width_; k += group) {
      const Pack a0 = load(variance + k * lanes) + factor[k];
      const Pack a1 = load(variance + (k + 1) * lanes) + factor[k + 1];
      const Pack a2 = load(variance + (k + 2) * lanes) + factor[k + 2];
      const Pack a3 = load(variance + (k + 3) * lanes) + factor[k + 3];
      const Pack d0 = load(other + k * lanes) - mean[k];
      const Pack d1 = load(other + (k + 1) * lanes) - mean[k + 1];
      const Pack d2 = load(other + (k + 2) * lanes) - mean[k + 2];
      const Pack d3 = load(other + (k + 3) * lanes) - mean[k + 3];
      const Pack a01 = a0 * a1;
      const Pack a23 = a2 * a3;
      const Pack n01 = d0 * d0 * a1 + d1 * d1 * a0;
      const Pack n23 = d2 * d2 * a3 + d3 * d3 * a2;
      const Pack product = a01 * a23;
      quadratic += (n01 * a23 + n23 * a01) / product;
      determinant.multiply(product);
      if (--left == 0) {
        determinant.normalise();
        left = steps_;
      }
    }
    return 0.5 * (quadratic + determinant.log());
  }

  /// 1/2 sum_k w_k d_k^2: with a certain side the weights 1 / a_k are those of the other side alone.
  template <class Weight>
  Pack weighted(const Weight& weight, Index i) const {
    const double* mean = own_means_.row(i).data();
    std::array<Pack, group> sums;  // several, because each addition would wait for the one before
    sums.fill(Pack::Zero());
    for (Index k = 0; k < width_; k += group) {
      for (Index g = 0; g < group; ++g) {
        const Pack d = load(panel_means_.data() + (k + g) * lanes) - mean[k + g];
        sums[static_cast<std::size_t>(g)] += d * d * weight(k + g);
      }
    }
    return 0.5 * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }

  void copy_rows(const Block& x) {
    own_means_.setZero(x.count, width_);
    own_means_.leftCols(x.mean.cols()) = x.mean.topRows(x.count);
    own_factors_.setOnes(x.count, width_);
    auto factors = own_factors_.leftCols(x.mean.cols());
    if (x.uniform()) {
      factors.colwise() += x.variance.col(0).head(x.count);
    } else {
      factors += x.variance.topRows(x.count);
    }
    if (!y_certain_) return;
    own_weights_ = own_factors_.cwiseInverse();
    own_logs_.resize(x.count);
    for (Index i = 0; i < x.count; ++i) {
      double sum = 0.0;
      for (Index k = 0; k < width_; ++k) sum += std::log1p(own_factors_(i, k) - 1.0);
      own_logs_(i) = 0.5 * sum;
    }
  }

  void copy_panel(const Block& y, Index first) {
    const Index d = y.mean.cols();
    panel_means_.setZero(width_, lanes);
    panel_means_.topRows(d) = y.mean.middleRows(first, lanes).transpose();
    panel_variances_.setZero(width_, lanes);
    if (y.uniform()) {
      panel_variances_.topRows(d).rowwise() = y.variance.col(0).segment(first, lanes).transpose();
    } else {
      panel_variances_.topRows(d) = y.variance.middleRows(first, lanes).transpose();
    }
    if (!x_certain_) return;
    panel_weights_ = (1.0 + panel_variances_.array()).inverse();
    panel_logs_ = 0.5 * panel_variances_.array().log1p().colwise().sum().transpose();
  }

  /// The same for variances beyond 1e75 times the bandwidth's square, one feature at a time.
  static void fill_carefully(const Block& x, const Block& y, MatrixRef out) {
    for (Index i = 0; i < x.count; ++i) {
      for (Index j = 0; j < y.count; ++j) {
        double sum = 0.0;
        for (Index k = 0; k < x.mean.cols(); ++k) {
          const double v = x.variance(i, x.uniform() ? 0 : k) + y.variance(j, y.uniform() ? 0 : k);
          const double d = x.mean(i, k) - y.mean(j, k);
          sum += std::log1p(v) + d / (1.0 + v) * d;
        }
        out(i, j) = 0.5 * sum;
      }
    }
  }

  bool x_certain_;
  bool y_certain_;
  Index width_ = 0;
  Index steps_ = 1;
  Matrix own_means_;
  Matrix own_factors_;
  Matrix own_weights_;
  Vector own_logs_;
  Matrix panel_means_;
  Matrix panel_variances_;
  Matrix panel_weights_;
  Pack panel_logs_;
};

}  // namespace

void squared_distances(const Block& x, const Block& y, MatrixRef out) {
  constexpr double lost = 0x1p-10;
  linalg::multiply(x.mean.topRows(x.count), y.mean.transpose(), out);
  const double* norms = y.norm.data();
  for (Index i = 0; i < out.rows(); ++i) {
    double* __restrict row = out.row(i).data();
    const double own = x.norm(i);
    int close = 0;
    for (Index j = 0; j < out.cols(); ++j) {
      const double sum = own + norms[j];
      const double distance = sum - 2.0 * row[j];
      close |= static_cast<int>(!(distance > lost * sum));
      row[j] = distance;
    }
    if (close == 0) continue;
    for (Index j = 0; j < out.cols(); ++j) {
      if (!(row[j] > lost * (own + norms[j]))) row[j] = (x.mean.row(i) - y.mean.row(j)).squaredNorm();
    }
  }
}

std::unique_ptr<PairRule> make_rbf_rule(const Side& x, const Side& y) {
  if (x.full() != nullptr || y.full() != nullptr) return make_dense_rule(x, y);
  if (x.low_rank() != nullptr || y.low_rank() != nullptr) return make_factor_rule(x, y);
  if (x.uniform() && y.uniform()) return std::make_unique<RoundRule>(x.certain() && y.certain());
  return std::make_unique<DiagonalRule>(x, y);
}

}  // namespace halosvm::kernels
