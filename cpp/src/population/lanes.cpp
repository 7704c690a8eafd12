// E step for errors that differ from row to row: eight rows side by side, each with its own T = V + S, so that small
// matrices are factorised by vector code. A missing value takes a row and a column of the identity and the residual 0.

#include "population/expectation.hpp"

#include "halosvm/core/normal.hpp"
#include "population/lane_rows.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::population {
namespace {

using kernels::lanes;
using kernels::load;
using kernels::Pack;

/// Memory of one thread: numbers in packs of one for each lane.
struct Work {
  Work(Index k, Index d, const Gaussians& data, const Noise& noise)
      : rows(data, noise),
        triangle(d * (d + 1) / 2),
        lower(triangle * lanes),
        inverse_pivots(d * lanes),
        inverse(triangle * lanes),
        residual(d * lanes),
        joint(k * lanes),
        pull(k * d * lanes),
        precision(k * triangle * lanes),
        sums(k * (1 + 2 * d + triangle) * lanes) {}

  LaneRows rows;
  Index triangle;
  Vector lower, inverse_pivots, inverse, residual, joint, pull, precision, sums;
};

class Lanes {
 public:
  Lanes(const Population& population, const Measurements::Prepared& data, const Request& request)
      : data_(data),
        request_(request),
        means_(population.means),
        k_(population.n_components()),
        d_(population.n_features()),
        log_weights_(log_weights(population)) {
    for (Index k = 0; k < k_; ++k) covariances_.push_back(population.covariance(k));
  }

  Work work() const { return {k_, d_, data_.data, data_.noise}; }

  void run(Index begin, Index end, Work& work, Expectation& out, Checkpoint& checkpoint) const {
    if (request_.statistics) {
      out.sums.reset(k_, d_, 0, true);
      work.sums.setZero();
    }
    for (Index first = begin; first < end; first += lanes) {
      if ((first - begin) % 256 == 0) checkpoint();
      const Index count = std::min(lanes, end - first);
      work.rows.read(data_.rows.data() + first, count);
      for (Index k = 0; k < k_; ++k) {
        const Index bad = density(k, work);
        if (bad < count) out.failure.merge({row(first + bad), k});
      }
      if (out.failure.any()) return;
      finish(first, count, work, out);
      if (out.failure.any()) return;
    }
    if (request_.statistics) reduce(work, out.sums);
  }

 private:
  Index row(Index position) const { return data_.rows[static_cast<std::size_t>(position)]; }

  /// The joint log density of component k, w and T^-1 for all lanes; the first lane whose T is singular, or `lanes`.
  Index density(Index k, Work& work) const {
    const Matrix& V = covariances_[static_cast<std::size_t>(k)];
    const LaneRows& rows = work.rows;
    kernels::LogProduct determinant;
    const Pack good = lane_cholesky(d_, rows.total(V), work.lower.data(), work.inverse_pivots.data(), determinant);
    lane_inverse(d_, work.lower.data(), work.inverse_pivots.data(), rows.there.data(), work.inverse.data());
    Pack present = Pack::Zero();
    for (Index j = 0; j < d_; ++j) {
      const Pack here = load(&rows.there(j * lanes));
      present += here;
      store(&work.residual(j * lanes), here * (load(&rows.x(j * lanes)) - means_(k, j)));
    }
    const Pack square = lane_pull(d_, work.inverse.data(), work.residual.data(), &work.pull(k * d_ * lanes));
    store(&work.joint(k * lanes), -0.5 * (square + determinant.log() + log_two_pi * present) + log_weights_(k));
    if (request_.statistics) {
      lane_precision(d_, work.inverse.data(), &work.precision(k * work.triangle * lanes));
    }
    if (good.minCoeff() > 0.5) return lanes;
    Index bad = 0;
    while (good(bad) > 0.5) ++bad;
    return bad;
  }

  /// Responsibilities, and what the rows add to the sums.
  void finish(Index first, Index count, Work& work, Expectation& out) const {
    Pack largest = load(&work.joint(0));
    for (Index k = 1; k < k_; ++k) largest = largest.max(load(&work.joint(k * lanes)));
    Pack sum = Pack::Zero();
    for (Index k = 0; k < k_; ++k) {
      double* const joint = &work.joint(k * lanes);
      for (Index l = 0; l < lanes; ++l) joint[l] = kernels::exp_of_minus(largest(l) - joint[l]);
      sum += load(joint);
    }
    Pack weight = Pack::Zero();
    for (Index l = 0; l < count; ++l) {
      const bool possible = largest(l) > -infinity;
      if (!possible && request_.log_density == nullptr) {
        out.failure.merge({row(first + l), -1});
        return;
      }
      weight(l) = data_.weights[static_cast<std::size_t>(first + l)];
      const double log_density = possible ? largest(l) + kernels::log_of(sum(l)) : -infinity;
      out.sums.log_likelihood += weight(l) * log_density;
      if (request_.log_density != nullptr) request_.log_density[row(first + l)] = log_density;
    }
    const Pack scale = sum.inverse();
    for (Index k = 0; k < k_; ++k) {
      const Pack r = load(&work.joint(k * lanes)) * scale;
      if (request_.responsibilities != nullptr) {
        for (Index l = 0; l < count; ++l) request_.responsibilities[row(first + l) * k_ + k] = r(l);
      }
      if (request_.statistics) accumulate(k, r * weight, work);
    }
  }

  void accumulate(Index k, const Pack& r, Work& work) const {
    double* sums = &work.sums(k * (1 + 2 * d_ + work.triangle) * lanes);
    const double* const w = &work.pull(k * d_ * lanes);
    const double* precision = &work.precision(k * work.triangle * lanes);
    store(sums, load(sums) + r);
    sums += lanes;
    for (Index j = 0; j < d_; ++j, sums += lanes) store(sums, load(sums) + r * load(w + j * lanes));
    for (Index j = 0; j < d_; ++j, sums += lanes) store(sums, load(sums) + r * load(precision + packed(j, j) * lanes));
    for (Index i = 0; i < d_; ++i) {
      const Pack w_i = load(w + i * lanes);
      for (Index j = 0; j <= i; ++j, sums += lanes, precision += lanes) {
        store(sums, load(sums) + r * (w_i * load(w + j * lanes) - load(precision)));
      }
    }
  }

  void reduce(const Work& work, Statistics& out) const {
    const double* sums = work.sums.data();
    const auto next = [&sums] {
      const double sum = load(sums).sum();
      sums += lanes;
      return sum;
    };
    for (Index k = 0; k < k_; ++k) {
      out.mass(k) = next();
      for (Index j = 0; j < d_; ++j) out.pull(k, j) = next();
      for (Index j = 0; j < d_; ++j) out.precision(k, j) = next();
      for (Index i = 0; i < d_; ++i) {
        for (Index j = 0; j <= i; ++j) out.curvature(k * d_ + i, j) = out.curvature(k * d_ + j, i) = next();
      }
    }
  }

  const Measurements::Prepared& data_;
  const Request& request_;
  const Matrix& means_;
  Index k_;
  Index d_;
  Vector log_weights_;
  std::vector<Matrix> covariances_;
};

}  // namespace

void expect_lanes(const Population& population, const Measurements::Prepared& data, const Request& request,
                  std::vector<Expectation>& parts, const Execution& execution) {
  const Lanes engine(population, data, request);
  const Chunks chunks(data.size(), 256);
  parts.resize(static_cast<std::size_t>(chunks.count()));
  std::vector<std::unique_ptr<Work>> works(static_cast<std::size_t>(thread_count(chunks.count(), execution)));
  run_tasks(chunks.count(), execution, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    auto& work = works[static_cast<std::size_t>(slot)];
    if (!work) work = std::make_unique<Work>(engine.work());
    engine.run(chunks.begin(chunk), chunks.end(chunk), *work, parts[static_cast<std::size_t>(chunk)], checkpoint);
  });
}

}  // namespace halosvm::population
