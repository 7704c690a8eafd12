#include "halosvm/check.hpp"
#include "halosvm/kernel.hpp"
#include "lanes.hpp"
#include "rule.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

namespace halosvm {
namespace {

using kernels::Block;
using kernels::padded;
using kernels::PairRule;
using kernels::Side;

void check_kernel(const ExpectedKernel& kernel, Index n_features) {
  const Index size = kernel.gamma.size();
  if (size != 1) check::same_size("gamma", size, "X", n_features, "features");
  for (Index k = 0; k < size; ++k) check::positive("gamma", kernel.gamma(k));
  check::require(std::isfinite(kernel.coef0), "coef0", "must be finite");
  if (kernel.kind != KernelKind::polynomial) return;
  check::require(1 <= kernel.degree && kernel.degree <= 3, "degree",
                 "is " + std::to_string(kernel.degree) + "; closed forms are known for 1, 2 and 3");
}

/// Factors of the features that make the bandwidth 1.
Vector scale_of(const ExpectedKernel& kernel) {
  switch (kernel.kind) {
    case KernelKind::rbf:
      return (2.0 * kernel.gamma).cwiseSqrt();
    case KernelKind::laplacian:
      return kernel.gamma;
    case KernelKind::polynomial:
      return kernel.gamma.cwiseSqrt();
    case KernelKind::linear:
      break;
  }
  return Vector::Ones(1);
}

/// Where differences of means count, the mean of up to 256 examples: far from the origin, squares would cancel.
Vector centre_of(const ExpectedKernel& kernel, const Gaussians& data) {
  Vector sum = Vector::Zero(data.n_features());
  const Index n = data.n_samples();
  if (n == 0 || kernel.kind == KernelKind::polynomial || kernel.kind == KernelKind::linear) return sum;
  const Index count = std::min<Index>(n, 256);
  std::vector<double> scratch(static_cast<std::size_t>(data.n_features()));
  for (Index i = 0; i < count; ++i) sum += data.means().block({i * n / count, 1}, scratch.data()).row(0).transpose();
  return sum / static_cast<double>(count);
}

std::unique_ptr<PairRule> make_rule(const ExpectedKernel& kernel, const Side& x, const Side& y) {
  switch (kernel.kind) {
    case KernelKind::laplacian:
      return kernels::make_laplacian_rule(x, y);
    case KernelKind::polynomial:
      return kernels::make_polynomial_rule(x, y, kernel.degree, kernel.coef0);
    case KernelKind::linear:
      return kernels::make_polynomial_rule(x, y, 1, 0.0);
    case KernelKind::rbf:
      break;
  }
  return kernels::make_rbf_rule(x, y);
}

/// What the rule says of each example with itself.
Vector own_values(const ExpectedKernel& kernel, const Side& side, const Execution& execution) {
  Vector out(side.data().n_samples());
  const Chunks chunks(out.size(), 16);
  run_tasks(chunks.count(), execution, [&](Index chunk, int /*slot*/, Checkpoint& checkpoint) {
    const auto rule = make_rule(kernel, side, side);
    Block block;
    Matrix value(1, kernels::lanes);
    for (Index i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      block.load(side, i, 1);
      rule->fill(block, block, value, checkpoint);
      out(i) = value(0, 0);
    }
  });
  return out;
}

template <class T>
void copy_row(const double* from, Index count, T* __restrict to) {
  for (Index j = 0; j < count; ++j) to[j] = static_cast<T>(from[j]);
}

/// One Gram matrix, tile by tile.
class Gram {
 public:
  Gram(const ExpectedKernel& kernel, const Gaussians& X, const Gaussians& Y, const GramTarget& out)
      : kernel_(kernel),
        symmetric_(&X == &Y),
        out_(out),
        scale_(scale_of(kernel)),
        centre_(centre_of(kernel, Y)),
        x_(X, scale_, centre_),
        y_(Y, scale_, centre_),
        block_(make_rule(kernel, x_, y_)->block_rows()) {}

  void compute(const Execution& execution, const KernelProgress& progress) {
    if (rows() == 0 || columns() == 0) return;
    if (kernel_.normalize) {
      own_ = own_values(kernel_, x_, execution);
      other_ = symmetric_ ? own_ : own_values(kernel_, y_, execution);
    }
    const Index parts = std::clamp<Index>(16 / strips(rows()), 1, strips(columns()));
    const Index per_part = (strips(columns()) + parts - 1) / parts;
    const Index n_tasks = strips(rows()) * parts;
    std::vector<Memory> memory(static_cast<std::size_t>(thread_count(n_tasks, execution)));
    for (Memory& one : memory) one.rule = make_rule(kernel_, x_, y_);
    std::atomic<Index> done{0};
    run_tasks(n_tasks, reporting(execution, progress, done), [&](Index task, int slot, Checkpoint& checkpoint) {
      Memory& mine = memory[static_cast<std::size_t>(slot)];
      const Index first = task / parts * block_;
      const Index part = task % parts * per_part;
      for (Index strip = part; strip < std::min(part + per_part, strips(columns())); ++strip) {
        if (symmetric_ && strip * block_ < first) continue;
        tile(first, strip * block_, mine, checkpoint);
        ++done;
      }
    });
  }

 private:
  struct Memory {
    std::unique_ptr<PairRule> rule;
    Block x;
    Block y;
    Matrix tile;
  };

  Index rows() const { return x_.data().n_samples(); }
  Index columns() const { return y_.data().n_samples(); }
  Index strips(Index count) const { return (count + block_ - 1) / block_; }
  Index tiles() const {
    return symmetric_ ? strips(rows()) * (strips(rows()) + 1) / 2 : strips(rows()) * strips(columns());
  }

  Execution reporting(const Execution& execution, const KernelProgress& progress,
                      const std::atomic<Index>& done) const {
    if (!progress) return execution;
    Execution out = execution;
    out.keep_running = [this, &execution, &progress, &done] {
      progress(static_cast<double>(done) / static_cast<double>(tiles()));
      return !execution.keep_running || execution.keep_running();
    };
    return out;
  }

  void tile(Index row, Index column, Memory& mine, Checkpoint& checkpoint) const {
    mine.x.load(x_, row, std::min(block_, rows() - row));
    mine.y.load(y_, column, std::min(block_, columns() - column));
    mine.tile.resize(mine.x.count, padded(mine.y.count));
    mine.rule->fill(mine.x, mine.y, mine.tile, checkpoint);
    finish(mine);
    const bool mirrored = symmetric_ && row != column;
    if (symmetric_ && row == column) {
      for (Index i = 1; i < mine.x.count; ++i) {
        for (Index j = 0; j < i; ++j) mine.tile(i, j) = mine.tile(j, i);
      }
    }
    if (out_.float64 != nullptr) {
      write(mine, out_.float64, mirrored);
    } else {
      write(mine, out_.float32, mirrored);
    }
  }

  /// From what the rule gives to the values of the kernel.
  void finish(Memory& mine) const {
    const bool logarithmic = mine.rule->logarithmic();
    for (Index i = 0; i < mine.x.count; ++i) {
      double* __restrict row = mine.tile.row(i).data();
      if (kernel_.normalize) {
        const double own = own_(mine.x.begin + i);
        const double* other = other_.data() + mine.y.begin;
        for (Index j = 0; j < mine.y.count; ++j) {
          if (logarithmic) {
            row[j] -= 0.5 * (own + other[j]);
          } else {
            const double size = std::sqrt(own) * std::sqrt(other[j]);
            row[j] = size > 0.0 ? row[j] / size : 0.0;
          }
        }
      }
      if (!logarithmic) continue;
      for (Index j = 0; j < mine.tile.cols(); ++j) row[j] = kernels::exp_of_minus(row[j]);
    }
  }

  template <class T>
  void write(Memory& mine, T* out, bool mirrored) const {
    for (Index i = 0; i < mine.x.count; ++i) {
      copy_row(mine.tile.row(i).data(), mine.y.count, out + (mine.x.begin + i) * out_.stride + mine.y.begin);
    }
    if (!mirrored) return;
    const Matrix transposed = mine.tile.leftCols(mine.y.count).transpose();
    for (Index j = 0; j < mine.y.count; ++j) {
      copy_row(transposed.row(j).data(), mine.x.count, out + (mine.y.begin + j) * out_.stride + mine.x.begin);
    }
  }

  const ExpectedKernel& kernel_;
  bool symmetric_;
  GramTarget out_;
  Vector scale_;
  Vector centre_;
  Side x_;
  Side y_;
  Index block_;
  Vector own_;    ///< what the rule says of X_i with itself, if normalised
  Vector other_;  ///< the same of Y_j
};

}  // namespace

void gram(const ExpectedKernel& kernel, const Gaussians& X, const Gaussians& Y, const GramTarget& out,
          const Execution& execution, const KernelProgress& progress) {
  check::same_size("Y", Y.n_features(), "X", X.n_features(), "features");
  check_kernel(kernel, X.n_features());
  Gram(kernel, X, Y, out).compute(execution, progress);
}

void gram(const ExpectedKernel& kernel, const Gaussians& X, const GramTarget& out, const Execution& execution,
          const KernelProgress& progress) {
  gram(kernel, X, X, out, execution, progress);
}

Vector gram_diagonal(const ExpectedKernel& kernel, const Gaussians& X, const Execution& execution) {
  check_kernel(kernel, X.n_features());
  const Vector scale = scale_of(kernel);
  const Vector centre = centre_of(kernel, X);
  const Side side(X, scale, centre);
  Vector values = own_values(kernel, side, execution);
  if (make_rule(kernel, side, side)->logarithmic()) values = values.unaryExpr(&kernels::exp_of_minus);
  return values;
}

}  // namespace halosvm
