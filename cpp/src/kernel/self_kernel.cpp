// Kernels of examples with themselves, and what mixtures make of those of their components.

#include "kernel/self_kernel.hpp"

#include "kernel/lanes.hpp"
#include "kernel/scaling.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::kernels {
namespace {

/// A sum of exp(-a) that neither over- nor underflows: relative to its largest term.
class LogSum {
 public:
  void add(double a) {
    if (a < least_) {
      sum_ *= exp_of_minus(least_ - a);
      least_ = a;
    }
    if (std::isfinite(a)) sum_ += exp_of_minus(a - least_);
  }
  /// -log of the sum.
  double value() const { return least_ - std::log(sum_); }

 private:
  double least_ = infinity;
  double sum_ = 0.0;
};

/// The kernel of one mixture with itself, tile by tile; one for each thread.
class OwnKernel {
 public:
  OwnKernel(const ExpectedKernel& kernel, const Mixtures& data, const Side& side)
      : data_(data), side_(side), rule_(make_rule(kernel, side, side)) {}

  double operator()(Index i, Checkpoint& checkpoint) {
    const Index step = rule_->block_rows();
    LogSum log_sum;
    double sum = 0.0;
    for (Index p = data_.begin(i); p < data_.end(i); p += step) {
      x_.load(side_, p, std::min(step, data_.end(i) - p));
      for (Index q = data_.begin(i); q < data_.end(i); q += step) {
        y_.load(side_, q, std::min(step, data_.end(i) - q));
        tile_.resize(x_.count, padded(y_.count));
        rule_->fill(x_, y_, tile_, checkpoint);
        add_tile(log_sum, sum);
      }
    }
    return rule_->logarithmic() ? log_sum.value() : sum;
  }

 private:
  void add_tile(LogSum& log_sum, double& sum) const {
    for (Index a = 0; a < x_.count; ++a) {
      for (Index b = 0; b < y_.count; ++b) {
        const double weight = data_.weight(x_.begin + a) * data_.weight(y_.begin + b);
        if (rule_->logarithmic()) {
          log_sum.add(tile_(a, b) - std::log(weight));
        } else {
          sum += weight * tile_(a, b);
        }
      }
    }
  }

  const Mixtures& data_;
  const Side& side_;
  std::unique_ptr<PairRule> rule_;
  Block x_;
  Block y_;
  Matrix tile_;
};

}  // namespace

Vector own_kernels(const ExpectedKernel& kernel, const Mixtures& data, const Side& side, const Execution& execution) {
  Vector out(data.n_samples());
  const Chunks chunks(out.size(), 16);
  run_tasks(chunks.count(), execution, [&](Index chunk, int /*slot*/, Checkpoint& checkpoint) {
    OwnKernel own(kernel, data, side);
    for (Index i = chunks.begin(chunk); i < chunks.end(chunk); ++i) out(i) = own(i, checkpoint);
  });
  return out;
}

Vector component_factors(const ExpectedKernel& kernel, const Mixtures& data, const Side& side,
                         const Execution& execution) {
  const bool logarithmic = make_rule(kernel, side, side)->logarithmic();
  Vector out(data.components().n_samples());
  for (Index a = 0; a < out.size(); ++a) out(a) = logarithmic ? -std::log(data.weight(a)) : data.weight(a);
  if (!kernel.normalize) return out;
  const Vector own = own_kernels(kernel, data, side, execution);
  for (Index i = 0; i < data.n_samples(); ++i) {
    auto factors = out.segment(data.begin(i), data.end(i) - data.begin(i));
    if (logarithmic) {
      factors.array() -= 0.5 * own(i);
    } else {
      factors *= own(i) > 0.0 ? 1.0 / std::sqrt(own(i)) : 0.0;
    }
  }
  return out;
}

}  // namespace halosvm::kernels
