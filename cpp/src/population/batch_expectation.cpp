// E step of batches: what the rows of a batch tell of its offset, one batch after the other. A first sweep over the
// rows factorises T = V + S, and sums T^-1 and T^-1 (x - m); these give the offset, and a last sweep the sums of the M
// step. Factors stay in memory from sweep to sweep, of as many rows as the cache of a processor holds.

#include "population/batch_rows.hpp"

#include "linalg/multiply.hpp"
#include "population/offsets.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace halosvm::population {
namespace {

using kernels::lanes;
using kernels::load;
using kernels::Pack;
using linalg::product;

/// The normal distribution of the offset of a batch before its rows are seen: N(centre, root root').
struct Before {
  Vector centre;
  Matrix root;
};

class Batch {
 public:
  Batch(const Population& population, const BatchedMeasurements::Prepared& data, bool statistics)
      : population_(population),
        data_(data),
        statistics_(statistics),
        k_(population.n_components()),
        d_(population.n_features()),
        triangle_(packed(d_, 0)),
        log_weights_(log_weights(population)),
        rows_(population, data),
        pull_(d_ * lanes),
        upper_(triangle_ * lanes),
        wide_(d_ * d_ * lanes),
        pulls_(d_ * lanes),
        precisions_(k_ * triangle_ * lanes),
        sums_(k_ * (1 + d_ + triangle_) * lanes) {}

  /// \param from where the search starts: the mean and covariance of the offset, or null.
  void run(Index batch, const Before& before, const BatchOffsets* from, Expectation& out, BatchOffsets& offsets,
           Checkpoint& checkpoint) {
    rows_.open(batch, out.failure, checkpoint);
    before_ = &before;
    failure_ = &out.failure;
    checkpoint_ = &checkpoint;
    shares_.resize((rows_.end() - rows_.begin()) * rows_.width() * lanes);
    if (rows_.width() == 1) {
      shares_.setOnes();
      gather(Shares::kept);
      if (failure_->any()) return;
      locate();
    } else if (from != nullptr) {
      mean_ = from->means.row(batch).transpose();
      spread_ = semidefinite_root(from->covariances.middleRows(batch * d_, d_));
      settle(Shares::here, !statistics_);
    } else {
      search();
    }
    if (failure_->any()) return;
    add_sums(out.sums);
    if (failure_->any()) return;
    offsets.means.row(batch) = mean_.transpose();
    linalg::multiply(spread_, spread_.transpose(), offsets.covariances.middleRows(batch * d_, d_));
  }

 private:
  /// Where the responsibilities of a sweep come from.
  enum class Shares : std::uint8_t {
    kept,   ///< the sweep before
    here,   ///< the offset as it is known
    alone,  ///< the offset before: about those of each row by itself
    prior,  ///< the weights of the components
    one,    ///< all rows are of one component
  };

  double* share(Index block) { return shares_.data() + (block - rows_.begin()) * rows_.width() * lanes; }

  /// r of a block, about the offset mean_ with the covariance spread_ spread_'.
  void weigh(Index block, const BatchRows::Slot& slot, Shares from) {
    const auto range = rows_.components(block);
    double* const r = share(block);
    Pack largest = Pack::Constant(-infinity);
    const double* inverse = slot.components;
    for (Index k = range.first; k < range.second; ++k, inverse += rows_.stride()) {
      double* const joint = r + (k - range.first) * lanes;
      const bool is_one = only_ < range.second - range.first;
      if (from == Shares::one && is_one) {
        store(joint, Pack::Constant(k - range.first == only_ ? 0.0 : -infinity));
      } else if (from == Shares::prior || from == Shares::one) {
        store(joint, Pack::Constant(log_weights_(k)));
      } else {
        Pack square = rows_.pull(slot, inverse, k, mean_, pull_.data());
        const Pack unknown = lane_times_lower(d_, inverse, spread_, upper_.data());
        if (from == Shares::alone) {
          square *= static_cast<double>(d_) / (static_cast<double>(d_) + unknown);
        } else {
          square += unknown;
        }
        store(joint, rows_.constant(inverse) - 0.5 * square);
      }
      largest = largest.max(load(joint));
    }
    // Where all densities are 0, as far from everything, the weights decide.
    Pack sum = Pack::Zero();
    for (Index k = range.first; k < range.second; ++k) {
      double* const joint = r + (k - range.first) * lanes;
      for (Index l = 0; l < lanes; ++l) {
        joint[l] = largest(l) > -infinity ? kernels::exp_of_minus(largest(l) - joint[l]) : population_.weights(k);
      }
      sum += load(joint);
    }
    for (Index k = range.first; k < range.second; ++k) {
      double* const joint = r + (k - range.first) * lanes;
      store(joint, load(joint) / sum);
    }
  }

  /// Sums T^-1 for each component, and T^-1 (x - m - centre).
  void gather(Shares from) {
    (*checkpoint_)();
    precisions_.setZero();
    pulls_.setZero();
    for (Index block = rows_.begin(); block < rows_.end(); ++block) {
      const BatchRows::Slot at = rows_.slot(block);
      if (failure_->any()) return;
      if (from != Shares::kept) weigh(block, at, from);
      const auto range = rows_.components(block);
      const double* inverse = at.components;
      for (Index k = range.first; k < range.second; ++k, inverse += rows_.stride()) {
        const Pack r = load(at.weight) * load(share(block) + (k - range.first) * lanes);
        rows_.pull(at, inverse, k, before_->centre, pull_.data());
        for (Index j = 0; j < d_; ++j)
          store(&pulls_(j * lanes), load(&pulls_(j * lanes)) + r * load(&pull_(j * lanes)));
        lane_precision(d_, inverse, upper_.data());
        double* const sums = &precisions_(k * triangle_ * lanes);
        for (Index e = 0; e < triangle_ * lanes; e += lanes) store(sums + e, load(sums + e) + r * load(&upper_(e)));
      }
    }
  }

  /// The posterior of the offset, from what was gathered.
  void locate() {
    const Matrix& C = before_->root;
    precision_.setZero(d_, d_);
    Vector h(d_);
    for (Index i = 0; i < d_; ++i) {
      h(i) = load(&pulls_(i * lanes)).sum();
      for (Index j = 0; j <= i; ++j) {
        double sum = 0.0;
        for (Index k = 0; k < k_; ++k) sum += load(&precisions_((k * triangle_ + packed(i, j)) * lanes)).sum();
        precision_(i, j) = precision_(j, i) = sum;
      }
    }
    seen_ = product(precision_, C);
    Matrix G = product(C.transpose(), seen_);
    G = (0.5 * (G + G.transpose())).eval();
    G.diagonal().array() += 1.0;
    cholesky(G);  // 1 + what is >= 0 but for rounding
    log_known_ = log_determinant(G);
    invert_lower(G);
    latent_ = product<Vector>(C.transpose(), h);
    latent_ = product<Vector>(G, latent_);
    latent_ = product<Vector>(G.transpose(), latent_);
    inverse_ = product(G.transpose(), G);
    slack_ = h - product<Vector>(seen_, latent_);
    mean_ = before_->centre + product<Vector>(C, latent_);
    const Matrix root = product(C, G.transpose());
    spread_ = semidefinite_root(product(root, root.transpose()));
  }

  /// Goes to and fro between components and offset until the offset rests. A fit goes on from there in its next pass;
  /// else the end has to be reached, since \ref remove_offsets takes out of it what each row has put in.
  void settle(Shares from, bool to_the_end) {
    const int longest = to_the_end ? 2000 : 50;
    const double still = to_the_end ? 1e-20 : 1e-8;
    for (int sweep = 0; sweep < longest; ++sweep) {
      const Vector last = latent_;
      gather(from);
      if (failure_->any()) return;
      locate();
      if (from == Shares::here && last.size() == d_ && sweep > 0) {
        const Vector move = latent_ - last;
        if (move.squaredNorm() + product<Vector>(before_->root, move).dot(product<Vector>(seen_, move)) < still) return;
      }
      from = Shares::here;
    }
  }

  /// Settles from several starts, and goes where the bound is highest.
  void search() {
    double highest = -infinity;
    Vector mean;
    Matrix spread;
    std::vector<Shares> starts{Shares::alone, Shares::prior};
    starts.resize(starts.size() + static_cast<std::size_t>(rows_.width()), Shares::one);
    only_ = -1;
    for (const Shares start : starts) {
      if (start == Shares::one) ++only_;
      mean_ = before_->centre;
      spread_ = before_->root;
      settle(start, false);
      if (failure_->any()) return;
      Statistics sums;
      const bool wanted = std::exchange(statistics_, false);
      add_sums(sums);
      statistics_ = wanted;
      if (sums.log_likelihood > highest || mean.size() == 0) {
        highest = sums.log_likelihood;
        mean = mean_;
        spread = spread_;
      }
    }
    mean_ = mean;
    spread_ = spread;
    settle(Shares::here, !statistics_);
  }

  void add_sums(Statistics& out) {
    if (statistics_) sums_.setZero();
    const bool uncertain = spread_.diagonal().maxCoeff() > 0.0;
    double likelihood = -0.5 * (latent_.squaredNorm() + log_known_);
    for (Index block = rows_.begin(); block < rows_.end(); ++block) {
      const BatchRows::Slot at = rows_.slot(block);
      const auto& items = data_.blocks[static_cast<std::size_t>(block)];
      const auto range = rows_.components(block);
      const double* inverse = at.components;
      for (Index k = range.first; k < range.second; ++k, inverse += rows_.stride()) {
        const double* const r = share(block) + (k - range.first) * lanes;
        const Pack weight = load(at.weight) * load(r);
        const Pack density = rows_.constant(inverse) - 0.5 * rows_.pull(at, inverse, k, mean_, pull_.data());
        for (Index l = 0; l < items.count; ++l) {
          if (weight(l) > 0.0) likelihood += weight(l) * (density(l) - std::log(r[l]));
        }
        if (data_.grouped()) {
          for (Index l = 0; l < items.count; ++l) likelihood += add_scatter(items.first + l, l, inverse, k, out);
        }
        if (statistics_) accumulate(k, weight, inverse, uncertain);
      }
    }
    out.log_likelihood += likelihood;
    if (statistics_) reduce(out);
  }

  /// w w' + T^-1 P T^-1 of a block.
  void accumulate(Index k, const Pack& weight, const double* inverse, bool uncertain) {
    double* sum = &sums_(k * (1 + d_ + triangle_) * lanes);
    store(sum, load(sum) + weight);
    sum += lanes;
    const double* const w = pull_.data();
    for (Index j = 0; j < d_; ++j, sum += lanes) store(sum, load(sum) + weight * load(w + j * lanes));
    if (uncertain) {
      lane_times_lower(d_, inverse, spread_, upper_.data());
      lane_transposed_times(d_, inverse, upper_.data(), wide_.data());
    }
    for (Index i = 0; i < d_; ++i) {
      const double* const row_i = &wide_(i * d_ * lanes);
      for (Index j = 0; j <= i; ++j, sum += lanes) {
        const double* const row_j = &wide_(j * d_ * lanes);
        Pack square = load(w + i * lanes) * load(w + j * lanes);
        for (Index p = 0; uncertain && p < d_; ++p) square += load(row_i + p * lanes) * load(row_j + p * lanes);
        store(sum, load(sum) + weight * square);
      }
    }
  }

  /// T^-1 scatter T^-1 of the rows of an item; returns what the scatter adds to the log likelihood.
  double add_scatter(Index item, Index lane, const double* inverse, Index k, Statistics& out) {
    Matrix M = Matrix::Zero(d_, d_);
    for (Index i = 0; i < d_; ++i) {
      for (Index j = 0; j <= i; ++j) M(i, j) = inverse[packed(i, j) * lanes + lane];
    }
    const Matrix white = product(M, data_.scatters.middleRows(item * d_, d_));
    if (statistics_) {
      const Matrix pulled = product(product(M.transpose(), white), M.transpose());
      linalg::add_product(pulled, M, out.curvature.middleRows(k * d_, d_));
    }
    return -0.5 * white.cwiseProduct(M).sum();
  }

  void reduce(Statistics& out) {
    const double* sums = sums_.data();
    const double* precisions = precisions_.data();
    const auto next = [](const double*& from) {
      const double sum = load(from).sum();
      from += lanes;
      return sum;
    };
    for (Index k = 0; k < k_; ++k) {
      out.mass(k) += next(sums);
      for (Index j = 0; j < d_; ++j) out.pull(k, j) += next(sums);
      for (Index i = 0; i < d_; ++i) {
        for (Index j = 0; j <= i; ++j) {
          const double precision = next(precisions);
          const double curvature = next(sums) - precision;
          if (i == j) out.precision(k, i) += precision;
          out.curvature(k * d_ + i, j) += curvature;
          if (i != j) out.curvature(k * d_ + j, i) += curvature;
        }
      }
    }
    OffsetSums& offsets = out.offsets;
    offsets.count += 1.0;
    offsets.latent += latent_;
    offsets.second += inverse_ + latent_ * latent_.transpose();
    const Matrix known = product(seen_, inverse_);
    offsets.rise += slack_ * latent_.transpose() - known;
    const Vector precision = precision_.diagonal() - known.cwiseProduct(seen_).rowwise().sum();
    offsets.precision += precision;
    offsets.excess += slack_.cwiseAbs2() - precision;
  }

  const Population& population_;
  const BatchedMeasurements::Prepared& data_;
  bool statistics_;
  Index k_;
  Index d_;
  Index triangle_;
  Vector log_weights_;
  // Memory of the thread that owns this copy.
  BatchRows rows_;
  Vector pull_, upper_, wide_, shares_;
  Vector pulls_, precisions_, sums_;
  // Of the batch.
  const Before* before_ = nullptr;
  Failure* failure_ = nullptr;
  Checkpoint* checkpoint_ = nullptr;
  Matrix precision_;  ///< A
  Matrix seen_;       ///< A C
  Matrix inverse_;    ///< G^-1
  Vector latent_;     ///< u
  Vector slack_;      ///< a
  double log_known_ = 0.0;
  Index only_ = 0;  ///< the component of Shares::one, as a place among those of a row
  Vector mean_;     ///< of the offset
  Matrix spread_;   ///< the root of its covariance
};

}  // namespace

std::pair<Index, Index> components_of(const Population& population, Index label) {
  if (label < 0 || population.classes.empty()) return {0, population.n_components()};
  const auto range = std::equal_range(population.classes.begin(), population.classes.end(), label);
  return {range.first - population.classes.begin(), range.second - population.classes.begin()};
}

void expect_batches(const Population& population, const BatchedMeasurements::Prepared& data, const BatchOffsets* known,
                    const BatchOffsets& from, bool statistics, Expectation& out, const Execution& execution) {
  const Index d = population.n_features();
  const Index n_batches = data.n_batches();
  const Before before{Vector::Zero(d), semidefinite_root(population.offsets)};
  const bool warm = from.means.size() > 0;
  const Chunks chunks(n_batches, 1);
  std::vector<Expectation> parts(static_cast<std::size_t>(chunks.count()));
  BatchOffsets offsets{Matrix::Zero(n_batches, d), Matrix::Zero(n_batches * d, d)};
  std::vector<std::unique_ptr<Batch>> own(static_cast<std::size_t>(thread_count(chunks.count(), execution)));
  const auto reset = [&](Statistics& sums) {
    sums.reset(population.n_components(), d, 0, true);
    sums.offsets.reset(before.root);
  };
  run_tasks(chunks.count(), execution, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    auto& mine = own[static_cast<std::size_t>(slot)];
    if (!mine) mine = std::make_unique<Batch>(population, data, statistics);
    Expectation& part = parts[static_cast<std::size_t>(chunk)];
    if (statistics) reset(part.sums);
    for (Index g = chunks.begin(chunk); g < chunks.end(chunk) && !part.failure.any(); ++g) {
      Before own_before = before;
      if (known != nullptr) {
        own_before.centre = known->means.row(g).transpose();
        own_before.root = semidefinite_root(known->covariances.middleRows(g * d, d));
      }
      mine->run(g, own_before, warm ? &from : nullptr, part, offsets, checkpoint);
    }
  });
  // `from` may be that of `out`.
  Expectation whole;
  if (statistics) reset(whole.sums);
  for (const Expectation& part : parts) {
    whole.failure.merge(part.failure);
    whole.sums.add(part.sums);
  }
  whole.offsets = std::move(offsets);
  out = std::move(whole);
}

}  // namespace halosvm::population
