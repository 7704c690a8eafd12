// Gram matrices: two batches and a rule come in, tiles are filled in parallel.

#include "halosvm/core/check.hpp"
#include "halosvm/kernel/kernel.hpp"
#include "kernel/lanes.hpp"
#include "kernel/self_kernel.hpp"
#include "kernel/rule.hpp"
#include "kernel/scaling.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

namespace halosvm {
namespace {

using kernels::Block;
using kernels::padded;
using kernels::PairRule;
using kernels::Side;

template <class T>
void copy_row(const double* from, Index count, T* __restrict to) {
  for (Index j = 0; j < count; ++j) to[j] = static_cast<T>(from[j]);
}

/// The first example of each strip, and the end: consecutive examples whose components make up the rows of a tile. An
/// example of more components has a strip for itself, of several tiles.
std::vector<Index> strips_of(const Mixtures& data, Index block_rows) {
  std::vector<Index> starts;
  for (Index i = 0; i < data.n_samples(); ++i) {
    if (starts.empty() || data.end(i) - data.begin(starts.back()) > block_rows) starts.push_back(i);
  }
  starts.push_back(data.n_samples());
  return starts;
}

/// One Gram matrix, tile by tile.
class Gram {
 public:
  Gram(const ExpectedKernel& kernel, const Mixtures& X, const Mixtures& Y, const GramTarget& out)
      : kernel_(kernel),
        symmetric_(&X == &Y),
        summed_(!X.plain() || !Y.plain()),
        X_(X),
        Y_(Y),
        out_(out),
        scale_(kernels::scale_of(kernel)),
        centre_(kernels::centre_of(kernel, Y.components())),
        x_(X.components(), scale_, centre_),
        y_(Y.components(), scale_, centre_),
        block_(kernels::make_rule(kernel, x_, y_)->block_rows()),
        rows_(strips_of(X, block_)),
        columns_(strips_of(Y, block_)) {}

  void compute(const Execution& execution, const KernelProgress& progress) {
    if (X_.n_samples() == 0 || Y_.n_samples() == 0) return;
    if (kernel_.normalize || summed_) {
      row_factors_ = kernels::component_factors(kernel_, X_, x_, execution);
      column_factors_ = symmetric_ ? row_factors_ : kernels::component_factors(kernel_, Y_, y_, execution);
    }
    const Index parts = std::clamp<Index>(16 / count(rows_), 1, count(columns_));
    const Index per_part = (count(columns_) + parts - 1) / parts;
    const Index n_tasks = count(rows_) * parts;
    std::vector<Memory> memory(static_cast<std::size_t>(thread_count(n_tasks, execution)));
    for (Memory& one : memory) one.rule = kernels::make_rule(kernel_, x_, y_);
    std::atomic<Index> done{0};
    run_tasks(n_tasks, reporting(execution, progress, done), [&](Index task, int slot, Checkpoint& checkpoint) {
      Memory& mine = memory[static_cast<std::size_t>(slot)];
      const Index row = task / parts;
      const Index part = task % parts * per_part;
      for (Index column = part; column < std::min(part + per_part, count(columns_)); ++column) {
        if (symmetric_ && column < row) continue;
        cell(row, column, mine, checkpoint);
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
    Matrix sum;  ///< of the tiles of two strips, a number for each pair of mixtures
  };

  /// The examples of a strip.
  struct Strip {
    Strip(const std::vector<Index>& starts, Index strip)
        : begin(starts[static_cast<std::size_t>(strip)]), end(starts[static_cast<std::size_t>(strip) + 1]) {}
    Index begin;
    Index end;
    Index size() const { return end - begin; }
  };

  static Index count(const std::vector<Index>& starts) { return static_cast<Index>(starts.size()) - 1; }
  Index cells() const { return symmetric_ ? count(rows_) * (count(rows_) + 1) / 2 : count(rows_) * count(columns_); }

  Execution reporting(const Execution& execution, const KernelProgress& progress,
                      const std::atomic<Index>& done) const {
    if (!progress) return execution;
    Execution out = execution;
    out.keep_running = [this, &execution, &progress, &done] {
      progress(static_cast<double>(done) / static_cast<double>(cells()));
      return !execution.keep_running || execution.keep_running();
    };
    return out;
  }

  /// The kernels of two strips: of one tile, unless one of them is a large mixture.
  void cell(Index row, Index column, Memory& mine, Checkpoint& checkpoint) const {
    const Strip r(rows_, row);
    const Strip c(columns_, column);
    const bool on_diagonal = symmetric_ && row == column;
    if (summed_) mine.sum.setZero(r.size(), c.size());
    for (Index p = X_.begin(r.begin); p < X_.begin(r.end); p += block_) {
      for (Index q = Y_.begin(c.begin); q < Y_.begin(c.end); q += block_) {
        if (on_diagonal && q < p) continue;
        mine.x.load(x_, p, std::min(block_, X_.begin(r.end) - p));
        mine.y.load(y_, q, std::min(block_, Y_.begin(c.end) - q));
        mine.tile.resize(mine.x.count, padded(mine.y.count));
        mine.rule->fill(mine.x, mine.y, mine.tile, checkpoint);
        finish(mine);
        if (summed_) add_tile(mine, r, c, on_diagonal && q > p ? 2.0 : 1.0);
      }
    }
    Matrix& values = summed_ ? mine.sum : mine.tile;
    if (on_diagonal) {
      for (Index i = 1; i < r.size(); ++i) {
        for (Index j = 0; j < i; ++j) values(i, j) = values(j, i);
      }
    }
    if (out_.float64 != nullptr) {
      write(values, r, c, out_.float64, symmetric_ && !on_diagonal);
    } else {
      write(values, r, c, out_.float32, symmetric_ && !on_diagonal);
    }
  }

  /// From what the rule gives to the values of the kernel, times the factors of both components.
  void finish(Memory& mine) const {
    const bool logarithmic = mine.rule->logarithmic();
    for (Index i = 0; i < mine.x.count; ++i) {
      double* __restrict row = mine.tile.row(i).data();
      if (row_factors_.size() > 0) {
        const double own = row_factors_(mine.x.begin + i);
        const double* other = column_factors_.data() + mine.y.begin;
        for (Index j = 0; j < mine.y.count; ++j)
          row[j] = logarithmic ? row[j] + (own + other[j]) : row[j] * own * other[j];
      }
      if (!logarithmic) continue;
      for (Index j = 0; j < mine.tile.cols(); ++j) row[j] = kernels::exp_of_minus(row[j]);
    }
  }

  /// Adds the values of components to those of their mixtures.
  void add_tile(Memory& mine, const Strip& r, const Strip& c, double times) const {
    Index row = r.begin;
    for (Index i = 0; i < mine.x.count; ++i) {
      while (X_.end(row) <= mine.x.begin + i) ++row;
      const double* values = mine.tile.row(i).data();
      Index column = c.begin;
      for (Index j = 0; j < mine.y.count; ++column) {
        const Index end = std::min(mine.y.count, Y_.end(column) - mine.y.begin);
        double sum = 0.0;
        for (; j < end; ++j) sum += values[j];
        mine.sum(row - r.begin, column - c.begin) += times * sum;
      }
    }
  }

  template <class T>
  void write(const Matrix& values, const Strip& r, const Strip& c, T* out, bool mirrored) const {
    for (Index i = 0; i < r.size(); ++i) {
      copy_row(values.row(i).data(), c.size(), out + (r.begin + i) * out_.stride + c.begin);
    }
    if (!mirrored) return;
    const Matrix transposed = values.leftCols(c.size()).transpose();
    for (Index j = 0; j < c.size(); ++j) {
      copy_row(transposed.row(j).data(), r.size(), out + (c.begin + j) * out_.stride + r.begin);
    }
  }

  const ExpectedKernel& kernel_;
  bool symmetric_;
  bool summed_;  ///< one side has mixtures of several components
  const Mixtures& X_;
  const Mixtures& Y_;
  GramTarget out_;
  Vector scale_;
  Vector centre_;
  Side x_;
  Side y_;
  Index block_;
  std::vector<Index> rows_;
  std::vector<Index> columns_;
  Vector row_factors_;     ///< of each component, if there are weights or norms
  Vector column_factors_;  ///< the same of Y
};

}  // namespace

void gram(const ExpectedKernel& kernel, const Mixtures& X, const Mixtures& Y, const GramTarget& out,
          const Execution& execution, const KernelProgress& progress) {
  check::same_size("Y", Y.n_features(), "X", X.n_features(), "features");
  kernels::check_kernel(kernel, X.n_features());
  check::require((out.float64 == nullptr) != (out.float32 == nullptr), "out", "must name one type of numbers");
  check::require(out.stride >= Y.n_samples(), "stride",
                 "is " + std::to_string(out.stride) + ", Y has " + std::to_string(Y.n_samples()) + " rows");
  X.components().check_once(execution);
  Y.components().check_once(execution);
  Gram(kernel, X, Y, out).compute(execution, progress);
}

void gram(const ExpectedKernel& kernel, const Mixtures& X, const GramTarget& out, const Execution& execution,
          const KernelProgress& progress) {
  gram(kernel, X, X, out, execution, progress);
}

Vector gram_diagonal(const ExpectedKernel& kernel, const Mixtures& X, const Execution& execution) {
  kernels::check_kernel(kernel, X.n_features());
  X.components().check_once(execution);
  const Vector scale = kernels::scale_of(kernel);
  const Vector centre = kernels::centre_of(kernel, X.components());
  const Side side(X.components(), scale, centre);
  Vector values = kernels::own_kernels(kernel, X, side, execution);
  if (kernels::make_rule(kernel, side, side)->logarithmic()) values = values.unaryExpr(&kernels::exp_of_minus);
  return values;
}

}  // namespace halosvm
