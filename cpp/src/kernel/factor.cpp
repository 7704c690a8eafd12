#include "lanes.hpp"
#include "rule.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace halosvm::kernels {
namespace {

/// Replaces u by C^-1 u and returns \p sum + log |A| for the Cholesky factor C of A, of which the lower triangle is
/// given by rows of \p size and overwritten. \p T is a number, or a Pack of them.
template <class T, class Log>
T solve_lower(T* A, T* u, Index size, const Log& log, T sum) {
  using std::sqrt;
  for (Index c = 0; c < size; ++c) {
    T pivot = A[c * size + c];
    for (Index k = 0; k < c; ++k) pivot -= A[c * size + k] * A[c * size + k];
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

/// a I + F F' with F = [F_i F_j]: its determinant is a^(d - r) |a I + F'F|, and the quadratic form, by Woodbury's
/// formula,
/// (|d|^2 - |C^-1 F'd|^2) / a. All that is as long as the features is a product of two blocks; the small matrices
/// a I + F'F of eight pairs are factored side by side.
class UniformFactorRule final : public PairRule {
 public:
  explicit UniformFactorRule(Index rank) : block_rows_(rows_for_rank(rank)) {}
  Index block_rows() const override { return block_rows_; }

  void fill(const Block& x, const Block& y, MatrixRef out, Checkpoint& checkpoint) override {
    checkpoint();
    squared_distances(x, y, out);
    own_.load(x);
    other_.load(y);
    cross_.noalias() = x.factor * y.factor.transpose();
    own_by_means_.noalias() = x.factor * y.mean.transpose();
    means_by_other_.noalias() = x.mean * y.factor.transpose();
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
    logs = solve_lower(inner_.data(), projection_.data(), size, log_pack, logs);
    Pack kept = distance;
    for (Index r = 0; r < size; ++r) kept -= projection_[static_cast<std::size_t>(r)].square();
    // A distance that overflowed leaves NaN, and is infinite.
    return 0.5 * (logs + kept.isNaN().select(distance, kept.max(0.0)) / a);
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
};

/// A + F F' with A = diag(a), which differs from pair to pair: |A| |I + F'A^-1 F| and d'A^-1 d - |C^-1 F'A^-1 d|^2,
/// where all inner products with A^-1 come from one product of [F d]' and its weighted copy.
class WeightedFactorRule final : public PairRule {
 public:
  explicit WeightedFactorRule(Index rank) : block_rows_(std::min<Index>(32, rows_for_rank(rank))) {}
  Index block_rows() const override { return block_rows_; }

  void fill(const Block& x, const Block& y, MatrixRef out, Checkpoint& checkpoint) override {
    const Index d = x.mean.cols();
    const Index size = x.rank + y.rank;
    rows_.resize(size + 1, d);
    weights_.setOnes(padded(d));
    for (Index i = 0; i < x.count; ++i) {
      checkpoint();
      copy_factor(x, i, 0);
      for (Index j = 0; j < y.count; ++j) {
        copy_factor(y, j, x.rank);
        rows_.row(size) = x.mean.row(i) - y.mean.row(j);
        out(i, j) = pair(x, y, i, j);
      }
    }
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

  double pair(const Block& x, const Block& y, Index i, Index j) {
    const Index d = x.mean.cols();
    const Index size = rows_.rows() - 1;
    set_variances(x, y, i, j);
    LogProduct product;
    for (Index k = 0; k < weights_.size(); k += lanes) {
      product.multiply(load(weights_.data() + k));
      product.normalise();
    }
    weighted_ = rows_ * weights_.head(d).cwiseInverse().asDiagonal();
    inner_.noalias() = rows_ * weighted_.transpose();
    const double quadratic = inner_(size, size);
    projection_ = inner_.row(size).head(size);
    double logs = product.log().sum();
    if (size > 0) {
      small_ = inner_.topLeftCorner(size, size);
      small_.diagonal().array() += 1.0;
      logs = solve_lower(small_.data(), projection_.data(), size, log_of, logs);
    }
    return 0.5 * (logs + std::max(0.0, quadratic - projection_.squaredNorm()));
  }

  Index block_rows_;
  Matrix rows_;      ///< F_i', F_j' and d
  Matrix weighted_;  ///< the same times A^-1
  Matrix inner_;
  Matrix small_;
  Vector projection_;
  Vector weights_;
};

}  // namespace

std::unique_ptr<PairRule> make_factor_rule(const Side& x, const Side& y) {
  const Index rank = std::max(x.rank(), y.rank());
  if (x.uniform() && y.uniform() && x.rank() + y.rank() > 0) return std::make_unique<UniformFactorRule>(rank);
  return std::make_unique<WeightedFactorRule>(rank);
}

}  // namespace halosvm::kernels
