// E step for errors that differ from row to row: eight rows side by side, each with its own T = V + S, so that small
// matrices are factorised by vector code. A missing value takes a row and a column of the identity and the residual 0.

#include "population/expectation.hpp"

#include "halosvm/core/normal.hpp"

#include "kernel/lanes.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::population {
namespace {

using kernels::lanes;
using kernels::load;
using kernels::Pack;

void store(double* to, const Pack& value) { Eigen::Map<Pack>{to} = value; }

/// Position of (i, j), i >= j, in a packed lower triangle.
Index at(Index i, Index j) { return i * (i + 1) / 2 + j; }

/// Memory of one thread: numbers in packs of one for each lane.
struct Work {
  Work(Index k, Index d, const Noise& noise)
      : d(d),
        triangle(d * (d + 1) / 2),
        x(d * lanes),
        there(d * lanes),
        errors(triangle * lanes),
        lower(triangle * lanes),
        inverse_pivots(d * lanes),
        inverse(triangle * lanes),
        residual(d * lanes),
        joint(k * lanes),
        pull(k * d * lanes),
        precision(k * triangle * lanes),
        sums(k * (1 + 2 * d + triangle) * lanes),
        rows(lanes, d),
        matrix(d, d),
        scratch(std::max(noise.scratch_size(lanes), lanes * d)) {}

  Index d;
  Index triangle;
  Vector x, there, errors, lower, inverse_pivots, inverse, residual, joint, pull, precision, sums;
  Matrix rows, matrix;
  Vector scratch;
  bool complete = true;
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

  Work work() const { return {k_, d_, data_.noise}; }

  void run(Index begin, Index end, Work& work, Expectation& out, Checkpoint& checkpoint) const {
    if (request_.statistics) {
      out.sums.reset(k_, d_, 0, true);
      work.sums.setZero();
    }
    for (Index first = begin; first < end; first += lanes) {
      if ((first - begin) % 256 == 0) checkpoint();
      const Index count = std::min(lanes, end - first);
      read(first, count, work);
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

  /// Rows, their errors and what is missing; lanes that are left over repeat the last row.
  void read(Index first, Index count, Work& work) const {
    const ConstMatrixMap rows = data_.means(first, count, work.scratch.data());
    work.complete = true;
    for (Index l = 0; l < lanes; ++l) {
      const Index i = std::min(l, count - 1);
      for (Index j = 0; j < d_; ++j) {
        const double value = rows(i, j);
        const bool there = value == value;
        work.x(j * lanes + l) = there ? value : 0.0;
        work.there(j * lanes + l) = there ? 1.0 : 0.0;
        work.complete = work.complete && there;
      }
    }
    read_errors(first, count, work);
    if (work.complete) return;
    for (Index i = 0; i < d_; ++i) {
      const Pack here = load(&work.there(i * lanes));
      for (Index j = 0; j < i; ++j) {
        double* entry = &work.errors(at(i, j) * lanes);
        store(entry, load(entry) * here * load(&work.there(j * lanes)));
      }
      double* entry = &work.errors(at(i, i) * lanes);
      store(entry, here * load(entry) + (1.0 - here));
    }
  }

  void read_errors(Index first, Index count, Work& work) const {
    const Noise& noise = data_.noise;
    if (noise.diagonal()) {
      work.errors.setZero();
      const Rows rows{0, count, data_.rows.data() + first};
      MatrixMap variances(work.rows.data(), count, d_);
      noise.variances(rows, variances, work.scratch.data());
      for (Index j = 0; j < d_; ++j) {
        for (Index l = 0; l < lanes; ++l) {
          work.errors(at(j, j) * lanes + l) = variances(std::min(l, count - 1), j);
        }
      }
      return;
    }
    for (Index l = 0; l < lanes; ++l) {
      const Index position = first + std::min(l, count - 1);
      const double* S = work.matrix.data();
      if (noise.full()) {
        S = noise.stored_matrix(row(position), work.scratch.data());
      } else {
        noise.matrix(row(position), MatrixMap(work.matrix.data(), d_, d_), work.scratch.data());
      }
      double* out = &work.errors(l);
      for (Index i = 0; i < d_; ++i) {
        for (Index j = 0; j <= i; ++j, out += lanes) *out = S[i * d_ + j];
      }
    }
  }

  /// The joint log density of component k, w and T^-1 for all lanes; the first lane whose T is singular, or `lanes`.
  Index density(Index k, Work& work) const {
    const Matrix& V = covariances_[static_cast<std::size_t>(k)];
    double* const L = work.lower.data();
    double* const inverse_pivots = work.inverse_pivots.data();
    const double threshold = singular_pivot * static_cast<double>(d_);
    kernels::LogProduct determinant;
    Pack good = Pack::Ones();
    for (Index i = 0; i < d_; ++i) {
      const double* const row_i = L + at(i, 0) * lanes;
      const Pack here = work.complete ? Pack::Ones() : load(&work.there(i * lanes));
      for (Index j = 0; j <= i; ++j) {
        const double* const row_j = L + at(j, 0) * lanes;
        double* const entry = L + at(i, j) * lanes;
        Pack T = load(&work.errors(at(i, j) * lanes));
        if (work.complete) {
          T += V(i, j);
        } else {
          T += V(i, j) * here * load(&work.there(j * lanes));
        }
        Pack sum = T;
        for (Index p = 0; p < j; ++p) sum -= load(row_i + p * lanes) * load(row_j + p * lanes);
        if (j < i) {
          store(entry, sum * load(inverse_pivots + j * lanes));
          continue;
        }
        good *= (sum > threshold * T && sum > smallest_variance).cast<double>();
        sum = (sum > smallest_variance).select(sum, Pack::Ones());
        store(inverse_pivots + i * lanes, sum.sqrt().inverse());
        determinant.multiply(sum);
        determinant.normalise();
      }
    }
    Pack quadratic = Pack::Zero();
    invert_and_solve(k, work, quadratic);
    Pack present = Pack::Zero();
    for (Index j = 0; j < d_; ++j) present += load(&work.there(j * lanes));
    const Pack density = -0.5 * (quadratic + determinant.log() + log_two_pi * present) + log_weights_(k);
    store(&work.joint(k * lanes), density);
    if (good.minCoeff() > 0.5) return lanes;
    Index bad = 0;
    while (good(bad) > 0.5) ++bad;
    return bad;
  }

  /// L^-1, y = L^-1 (x - m) and its square, w = L^-T y, and the lower triangle of T^-1 if sums are wanted.
  void invert_and_solve(Index k, Work& work, Pack& quadratic) const {
    const double* const L = work.lower.data();
    double* const M = work.inverse.data();
    double* const w = &work.pull(k * d_ * lanes);
    for (Index j = 0; j < d_; ++j) {
      Pack rest = load(&work.x(j * lanes)) - means_(k, j);
      if (!work.complete) rest *= load(&work.there(j * lanes));
      store(&work.residual(j * lanes), rest);
      store(w + j * lanes, Pack::Zero());
    }
    for (Index i = 0; i < d_; ++i) {
      const Pack pivot = load(&work.inverse_pivots(i * lanes));
      Pack y = pivot * load(&work.residual(i * lanes));
      for (Index j = 0; j < i; ++j) {
        Pack sum = Pack::Zero();
        for (Index p = j; p < i; ++p) sum -= load(L + at(i, p) * lanes) * load(M + at(p, j) * lanes);
        sum *= pivot;
        store(M + at(i, j) * lanes, sum);
        y += sum * load(&work.residual(j * lanes));
      }
      store(M + at(i, i) * lanes, pivot);
      quadratic += y * y;
      for (Index j = 0; j <= i; ++j) store(w + j * lanes, load(w + j * lanes) + load(M + at(i, j) * lanes) * y);
    }
    if (!request_.statistics) return;
    double* out = &work.precision(k * work.triangle * lanes);
    for (Index i = 0; i < d_; ++i) {
      for (Index j = 0; j <= i; ++j, out += lanes) {
        Pack sum = Pack::Zero();
        for (Index p = i; p < d_; ++p) sum += load(M + at(p, i) * lanes) * load(M + at(p, j) * lanes);
        if (!work.complete && i == j) sum *= load(&work.there(i * lanes));
        store(out, sum);
      }
    }
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
    for (Index j = 0; j < d_; ++j, sums += lanes) store(sums, load(sums) + r * load(precision + at(j, j) * lanes));
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
