// Kernels between Gaussians of low rank: small systems for each pair, several pairs side by side.

#include "kernel/lanes.hpp"
#include "linalg/pivoted_cholesky.hpp"
#include "linalg/multiply.hpp"
#include "kernel/rule.hpp"

#include "linalg/qr.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace halosvm::kernels {
namespace {

double lesser(double a, double b) { return std::min(a, b); }
Pack lesser(const Pack& a, const Pack& b) { return a.min(b); }

/// Replaces u by C^-1 u and returns \p sum + log |A| for the Cholesky factor C of A, of which the lower triangle is
/// given by rows of \p size and overwritten. \p T is a number, or a Pack of them. \p margin, given a positive
/// one, ceases to be if a pivot is \ref lost.
template <class T, class Log>
T solve_lower(T* A, T* u, Index size, const Log& log, T sum, T& margin) {
  using std::sqrt;
  for (Index c = 0; c < size; ++c) {
    T pivot = A[c * size + c];
    const T least = lost * pivot;
    for (Index k = 0; k < c; ++k) pivot -= A[c * size + k] * A[c * size + k];
    margin = lesser(margin, pivot - least);
    sum += log(pivot);
    const T inverse = 1.0 / sqrt(pivot);
    for (Index r = c + 1; r < size; ++r) {
      T value = A[r * size + c];
      for (Index k = 0; k < c; ++k) value -= A[r * size + k] * A[c * size + k];
      A[r * size + c] = value * inverse;
    }
    for (Index k = 0; k < c; ++k) u[c] -= A[c * size + k] * u[k];
    u[c] *= inverse;
  }
  return sum;
}

Pack log_pack(const Pack& x) {
  Pack out;
  for (Index l = 0; l < lanes; ++l) out[l] = log_of(x[l]);
  return out;
}

/// Tiles whose products of factors stay in the cache.
Index rows_for_rank(Index rank) { return std::clamp<Index>(padded(256 / std::max<Index>(1, rank)), 16, 96); }

/// One pair at a time: A + F F' with A = diag(a), |A| |I + F'A^-1 F| and d'A^-1 d - |C^-1 F'A^-1 d|^2, where all inner
/// products with A^-1 come from one product of [F d]' and its weighted copy.
class FactorPair {
 public:
  /// Turns to row i of x.
  void turn(const Block& x, const Block& y, Index i) {
    rows_.resize(x.rank + y.rank + 1, x.mean.cols());
    weights_.setOnes(padded(x.mean.cols()));
    copy_factor(x, i, 0);
  }

  /// 1/2 (quadratic form + log determinant) of that row and row j of y.
  double exponent(const Block& x, const Block& y, Index i, Index j) {
    const Index d = x.mean.cols();
    const Index size = rows_.rows() - 1;
    copy_factor(y, j, x.rank);
    rows_.row(size) = x.mean.row(i) - y.mean.row(j);
    set_variances(x, y, i, j);
    LogProduct product;
    for (Index k = 0; k < weights_.size(); k += lanes) {
      product.multiply(load(weights_.data() + k));
      product.normalise();
    }
    double own_logs = 0.0;
    for (const double part : product.log()) own_logs += part;
    weighted_ = rows_ * weights_.head(d).cwiseInverse().asDiagonal();
    linalg::multiply(rows_, weighted_.transpose(), inner_);
    const double quadratic = inner_(size, size);
    projection_ = inner_.row(size).head(size);
    small_ = inner_.topLeftCorner(size, size);
    small_.diagonal().array() += 1.0;
    double margin = 1.0;
    const double logs = solve_lower(small_.data(), projection_.data(), size, log_of, own_logs, margin);
    const double kept = quadratic - projection_.squaredNorm();
    if (!(margin >= 0.0) || kept < lost * quadratic) return orthogonal(own_logs);
    return 0.5 * (logs + kept);
  }

 private:
  void copy_factor(const Block& block, Index i, Index to) {
    for (Index a = 0; a < block.rank; ++a) rows_.row(to + a) = block.factor.row(a * block.mean.rows() + i);
  }

  void set_variances(const Block& x, const Block& y, Index i, Index j) {
    auto a = weights_.head(x.mean.cols()).array();
    if (x.uniform()) {
      a = 1.0 + x.variance(i, 0);
    } else {
      a = 1.0 + x.variance.row(i).transpose().array();
    }
    if (y.uniform()) {
      a += y.variance(j, 0);
    } else {
      a += y.variance.row(j).transpose().array();
    }
  }

  double orthogonal(double own_logs) {
    const Index d = rows_.cols();
    const Index size = rows_.rows() - 1;
    stacked_.setZero(d + size, size + 1);
    stacked_.topRows(d) = weights_.head(d).cwiseSqrt().cwiseInverse().asDiagonal() * rows_.transpose();
    stacked_.bottomLeftCorner(size, size).setIdentity();
    return orthogonal_exponent(stacked_, own_logs);
  }

  Matrix rows_;      ///< F_i', F_j' and d
  Matrix weighted_;  ///< the same times A^-1
  Matrix inner_;
  Matrix small_;
  Vector projection_;
  Vector weights_;
  Eigen::MatrixXd stacked_;
};

/// a I + F F' with F = [F_i F_j]: its determinant is a^(d - r) |a I + F'F|, and the quadratic form, by Woodbury's
/// formula,
/// (|d|^2 - |C^-1 F'd|^2) / a. All that is as long as the features is a product of two blocks; the small matrices
/// a I + F'F of eight pairs are factored side by side. Pairs whose digits cancel are computed one by one.
class UniformFactorRule final : public PairRule {
 public:
  explicit UniformFactorRule(Index rank) : block_rows_(rows_for_rank(rank)) {}
  Index block_rows() const override { return block_rows_; }

  void fill(const Block& x, const Block& y, MatrixRef out, Checkpoint& checkpoint) override {
    checkpoint();
    squared_distances(x, y, out);
    own_.load(x);
    other_.load(y);
    linalg::multiply(x.factor, y.factor.transpose(), cross_);
    linalg::multiply(x.factor, y.mean.transpose(), own_by_means_);
    linalg::multiply(x.mean, y.factor.transpose(), means_by_other_);
    checkpoint();
    const Index size = x.rank + y.rank;
    inner_.resize(static_cast<std::size_t>(size * size));
    projection_.resize(static_cast<std::size_t>(size));
    for (Index i = 0; i < x.count; ++i) {
      for (Index first = 0; first < y.count; first += lanes) {
        const Pack v = load(y.variance.data() + first) + x.variance(i, 0);
        Eigen::Map<Pack> to(out.row(i).data() + first);
        to = pair(x, y, i, first, v, to);
      }
    }
  }

 private:
  /// What a block contributes by itself.
  struct Own {
    Matrix gram;        ///< (rank rank) x padded(count): row a rank + b holds (F_i'F_i)(a, b)
    Matrix projection;  ///< rank x padded(count): F_i'x_i

    void load(const Block& block) {
      const Index rows = block.mean.rows();
      gram.resize(block.rank * block.rank, rows);
      projection.resize(block.rank, rows);
      for (Index a = 0; a < block.rank; ++a) {
        const auto column = block.factor.middleRows(a * rows, rows);
        projection.row(a) = column.cwiseProduct(block.mean).rowwise().sum().transpose();
        for (Index b = 0; b <= a; ++b) {
          gram.row(a * block.rank + b) =
              column.cwiseProduct(block.factor.middleRows(b * rows, rows)).rowwise().sum().transpose();
        }
      }
    }
  };

  Pack pair(const Block& x, const Block& y, Index i, Index first, const Pack& v, const Pack& distance) {
    const Index size = x.rank + y.rank;
    const Pack a = 1.0 + v;
    for (Index r = 0; r < x.rank; ++r) {
      for (Index c = 0; c <= r; ++c) entry(r, c) = Pack::Constant(own_.gram(r * x.rank + c, i));
      entry(r, r) += a;
      projection_[static_cast<std::size_t>(r)] =
          own_.projection(r, i) - load(own_by_means_.row(r * x.mean.rows() + i).data() + first);
    }
    for (Index s = 0; s < y.rank; ++s) {
      const Index r = x.rank + s;
      for (Index c = 0; c < x.rank; ++c) {
        entry(r, c) = load(cross_.row(c * x.mean.rows() + i).data() + s * y.mean.rows() + first);
      }
      for (Index c = 0; c <= s; ++c) entry(r, x.rank + c) = load(other_.gram.row(s * y.rank + c).data() + first);
      entry(r, r) += a;
      projection_[static_cast<std::size_t>(r)] = load(means_by_other_.row(i).data() + s * y.mean.rows() + first) -
                                                 load(other_.projection.row(s).data() + first);
    }
    const auto rest = static_cast<double>(x.mean.cols() - size);
    Pack logs;
    for (Index l = 0; l < lanes; ++l) logs[l] = rest * log_of_one_plus(v[l]);
    Pack margin = Pack::Ones();
    logs = solve_lower(inner_.data(), projection_.data(), size, log_pack, logs, margin);
    Pack kept = distance;
    for (Index r = 0; r < size; ++r) kept -= projection_[static_cast<std::size_t>(r)].square();
    // A distance that overflowed leaves NaN, and is infinite.
    Pack exponents = 0.5 * (logs + kept.isNaN().select(distance, kept.max(0.0)) / a);
    const Pack norms = load(y.norm.data() + first) + x.norm(i);
    const auto cancelled = !(margin >= 0.0) || (kept < lost * norms && distance > 0.0);
    if (cancelled.any()) {
      single_.turn(x, y, i);
      for (Index l = 0; l < lanes; ++l) {
        if (cancelled(l)) exponents[l] = single_.exponent(x, y, i, first + l);
      }
    }
    return exponents;
  }

  Pack& entry(Index r, Index c) {
    return inner_[static_cast<std::size_t>(r) * projection_.size() + static_cast<std::size_t>(c)];
  }

  Index block_rows_;
  Own own_;
  Own other_;
  Matrix cross_;
  Matrix own_by_means_;
  Matrix means_by_other_;
  std::vector<Pack, Eigen::aligned_allocator<Pack>> inner_;
  std::vector<Pack, Eigen::aligned_allocator<Pack>> projection_;
  FactorPair single_;
};

/// A differs from feature to feature: pair by pair.
class WeightedFactorRule final : public PairRule {
 public:
  explicit WeightedFactorRule(Index rank) : block_rows_(std::min<Index>(32, rows_for_rank(rank))) {}
  Index block_rows() const override { return block_rows_; }

  void fill(const Block& x, const Block& y, MatrixRef out, Checkpoint& checkpoint) override {
    for (Index i = 0; i < x.count; ++i) {
      checkpoint();
      pair_.turn(x, y, i);
      for (Index j = 0; j < y.count; ++j) out(i, j) = pair_.exponent(x, y, i, j);
    }
  }

 private:
  Index block_rows_;
  FactorPair pair_;
};

}  // namespace

double orthogonal_exponent(Eigen::MatrixXd& stacked, double logs, Vector* residual) {
  const Index size = stacked.cols() - 1;
  const Vector coefficients = linalg::qr(stacked);
  if (residual != nullptr) {
    *residual = stacked(size, size) * Vector::Unit(stacked.rows(), size);
    linalg::apply_q(stacked, coefficients, *residual);
  }
  const auto triangle = stacked.diagonal().array().abs();
  return 0.5 * (logs + 2.0 * triangle.head(size).log().sum() + triangle(size) * triangle(size));
}

std::unique_ptr<PairRule> make_factor_rule(const Side& x, const Side& y) {
  const Index rank = std::max(x.rank(), y.rank());
  if (x.uniform() && y.uniform() && x.rank() + y.rank() > 0) return std::make_unique<UniformFactorRule>(rank);
  return std::make_unique<WeightedFactorRule>(rank);
}

}  // namespace halosvm::kernels
