// LocalObjective::exact_intercept: one pass over the data measures all problems, or as many as memory allows; the
// searches then read nothing but these numbers.

#include "halosvm/objective/local_objective.hpp"
#include "objective/intercept_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace halosvm {
namespace {

constexpr Index block = 256;
/// Of so many rows of each block, a first search makes the guess of many examples good.
constexpr Index sample = 16;
constexpr Index many = 16384;
/// |g| below this fraction of the slopes it sums is rounding error.
constexpr double zero_slope = 1e-15;
using Block = std::array<double, block>;

/// Bytes that the numbers of all problems at once may take: 3 % of the data, for other things of a fit also grow with
/// the number of examples, or 1 MB.
double memory_budget(const Gaussians& data, Index n_samples) {
  const auto row = static_cast<double>(data.means().row_bytes() + data.covariances().row_bytes());
  return std::max(0.03 * row * static_cast<double>(n_samples), 1e6);
}

/// What is known of all problems.
struct ZerosOfAll {
  std::vector<Zeros> zeros;
  void set_zero() { std::fill(zeros.begin(), zeros.end(), Zeros{}); }
  void add(const ZerosOfAll& other) {
    for (std::size_t k = 0; k < zeros.size(); ++k) zeros[k].add(other.zeros[k]);
  }
};

/// In single precision, without overflow.
float in_single(double x) {
  return static_cast<float>(std::min(x, static_cast<double>(std::numeric_limits<float>::max())));
}

}  // namespace

/// For a group of problems, where each example's margin deficit vanishes, t_i: m_i = y_i (t_i - b), and its spread.
class LocalObjective::Scores {
 public:
  explicit Scores(const LocalObjective& objective)
      : objective_(objective),
        n_(objective.n_samples()),
        shift_(objective.loss_->traits().shift),
        spreads_(!objective.all_certain() && shift_ == 0.0),
        budget_(memory_budget(objective.data_, n_)),
        rounded_(spreads_ && 16.0 * static_cast<double>(n_) > budget_),
        chunks_(n_, 4096) {
    const double bytes = (spreads_ ? (rounded_ ? 12.0 : 16.0) : 8.0) * static_cast<double>(n_);
    const auto fit = static_cast<Index>(std::min(budget_ / bytes, 1e6));
    size_ = std::max<Index>(1, std::min(fit, objective.n_problems()));
    const auto numbers = static_cast<std::size_t>(size_ * n_);
    zeros_.resize(numbers);
    if (spreads_) rounded_ ? narrow_.resize(numbers) : wide_.resize(numbers);
  }

  /// Problems in a group.
  Index size() const { return size_; }
  /// Whether spreads are kept in single precision, as a double would take more memory than there is for one problem.
  bool rounded() const { return rounded_; }

  /// The searches for problems first, first + 1, ... with coefficients W, at their ends: one pass over the data.
  std::vector<InterceptSearch> search(Index first, const ConstMatrixRef& W, const ConstVectorRef& guess) {
    const std::vector<Zeros> zeros = measure(first, W);
    const auto start = [&](const auto& where, double zero) {
      std::vector<InterceptSearch> searches;
      searches.reserve(static_cast<std::size_t>(W.rows()));
      for (Index k = 0; k < W.rows(); ++k) {
        searches.emplace_back(zeros[static_cast<std::size_t>(k)], objective_.loss_->traits().kinked, where(k), zero);
      }
      return searches;
    };
    std::vector<InterceptSearch> rough;
    if (n_ >= many) {  // until g drowns in the noise of the sample
      rough = start([&](Index k) { return guess(k); }, 1.0 / std::sqrt(static_cast<double>(n_) * sample / block));
      finish(rough, sample);
    }
    auto searches =
        start([&](Index k) { return rough.empty() ? guess(k) : rough[static_cast<std::size_t>(k)].b(); }, zero_slope);
    finish(searches, block);
    return searches;
  }

 private:
  /// Fills the numbers of all examples.
  std::vector<Zeros> measure(Index first, const ConstMatrixRef& W) {
    const LocalObjective& o = objective_;
    const Index rows_at_once = o.data_.block_rows();
    const auto n_problems = static_cast<std::size_t>(W.rows());
    const Vector no_intercept = Vector::Zero(W.rows());
    BlockMemory<ZerosOfAll, Workspace> memory;
    ZerosOfAll all{std::vector<Zeros>(n_problems)};
    sum_over_blocks(
        Chunks(n_, o.data_.task_rows()), rows_at_once, o.execution_, memory,
        [&] { return ZerosOfAll{std::vector<Zeros>(n_problems)}; },
        [&] { return Workspace(o, rows_at_once, W.rows()); },
        [&](Index begin, Index count, Workspace& mine, ZerosOfAll& part) {
          const Rows rows = o.rows(begin, count);
          o.margins(rows, first, W, no_intercept, mine);
          for (Index k = 0; k < W.rows(); ++k) {
            keep(k, begin, rows, mine.m_.row(k).data(), mine.s_.row(k).data(), mine.sign_.row(k).data(),
                 part.zeros[static_cast<std::size_t>(k)]);
          }
        },
        all);
    first_ = first;
    return std::move(all.zeros);
  }

  /// Takes all searches to their ends on the first rows of each block, in step, so that threads start once for all.
  void finish(std::vector<InterceptSearch>& searches, Index rows_of_block) const {
    const Index n_chunks = chunks_.count();
    const Index at_once = std::max<Index>(1, 4096 / std::min<Index>(n_, 4096));
    std::vector<Slope> partial(searches.size() * static_cast<std::size_t>(n_chunks));
    std::vector<Index> open(searches.size());
    for (std::size_t k = 0; k < open.size(); ++k) open[k] = static_cast<Index>(k);
    while (!open.empty()) {
      const Index units = static_cast<Index>(open.size()) * n_chunks;
      const auto part = [&](Index unit, Checkpoint& checkpoint) {
        const Index k = open[static_cast<std::size_t>(unit / n_chunks)];
        partial[static_cast<std::size_t>(unit)] =
            slope(k, unit % n_chunks, searches[static_cast<std::size_t>(k)], rows_of_block, checkpoint);
      };
      run_tasks((units + at_once - 1) / at_once, objective_.execution_, [&](Index task, int, Checkpoint& checkpoint) {
        const Index end = std::min(units, (task + 1) * at_once);
        for (Index unit = task * at_once; unit < end; ++unit) part(unit, checkpoint);
      });
      for (std::size_t at = 0; at < open.size(); ++at) {
        Slope total;
        for (Index chunk = 0; chunk < n_chunks; ++chunk) {
          total.add(partial[at * static_cast<std::size_t>(n_chunks) + static_cast<std::size_t>(chunk)]);
        }
        searches[static_cast<std::size_t>(open[at])].observe(total);
      }
      const auto done = [&](Index k) { return searches[static_cast<std::size_t>(k)].done(); };
      open.erase(std::remove_if(open.begin(), open.end(), done), open.end());
    }
  }

  /// Keeps a block of problem k of the group, given m at b = 0.
  void keep(Index k, Index begin, const Rows& rows, const double* m, const double* s, const double* y, Zeros& zeros) {
    const Index offset = k * n_ + begin;
    double* t = zeros_.data() + offset;
    for (Index i = 0; i < rows.count; ++i) t[i] = y[i] * (m[i] + shift_ * s[i]);
    if (spreads_) {
      if (rounded_) {
        std::transform(s, s + rows.count, narrow_.data() + offset, in_single);
      } else {
        std::copy(s, s + rows.count, wide_.data() + offset);
      }
    }
    Zeros here;
    for (Index i = 0; i < rows.count; ++i) {
      const bool counts = objective_.weights_ == nullptr || objective_.weights_[rows[i]] > 0.0;
      const double low = counts ? t[i] : infinity;
      const double high = counts ? t[i] : -infinity;
      const double whole = shift_ == 0.0 ? s[i] : 0.0;
      const double spread = rounded_ ? static_cast<double>(in_single(whole)) : whole;
      here.lowest = std::min(here.lowest, low);
      here.highest = std::max(here.highest, high);
      here.last_positive = std::max(here.last_positive, y[i] > 0.0 ? high : -infinity);
      here.first_negative = std::min(here.first_negative, y[i] > 0.0 ? infinity : low);
      here.narrowest = std::min(here.narrowest, counts ? spread : infinity);
      here.widest = std::max(here.widest, counts ? spread : 0.0);
    }
    zeros.add(here);
  }

  /// The part of a chunk in the slope that a search asks for.
  Slope slope(Index k, Index chunk, const InterceptSearch& search, Index rows_of_block, Checkpoint& checkpoint) const {
    const LocalObjective& o = objective_;
    Block m;
    Block y;
    Block c;
    Block s;
    Block slope_m;
    Block other;
    Block unused;
    s.fill(shift_ == 0.0 ? o.floor_ : 0.0);
    Slope sum;
    for (Index begin = chunks_.begin(chunk); begin < chunks_.end(chunk); begin += block) {
      checkpoint();
      const Index count = std::min(rows_of_block, chunks_.end(chunk) - begin);
      const Rows rows = o.rows(begin, count);
      const Index offset = k * n_ + begin;
      const double* t = zeros_.data() + offset;
      o.targets_.signs(rows, first_ + k, y.data());
      for (Index i = 0; i < count; ++i)
        m[static_cast<std::size_t>(i)] = y[static_cast<std::size_t>(i)] * (t[i] - search.b());
      for (Index i = 0; i < count; ++i) c[static_cast<std::size_t>(i)] = o.weight(rows[i]);
      const double* spread = s.data();
      if (rounded_) {
        std::copy(narrow_.data() + offset, narrow_.data() + offset + count, s.data());
      } else if (spreads_) {
        spread = wide_.data() + offset;
      }
      const ConstVectorMap weight(c.data(), count);
      o.loss_->first(count, m.data(), spread, other.data(), slope_m.data(), unused.data());
      VectorMap pull(slope_m.data(), count);
      pull.array() *= weight.array();
      sum.size += pull.cwiseAbs().sum();
      sum.g += pull.dot(ConstVectorMap(y.data(), count));
      if (search.needs_decrease()) {
        o.loss_->second(count, m.data(), spread, other.data(), slope_m.data(), unused.data());
        sum.decrease += weight.dot(ConstVectorMap(other.data(), count));
      }
      if (search.needs_kinks()) add_kinks(count, t, spread, c.data(), search, sum);
    }
    return sum;
  }

  static void add_kinks(Index count, const double* t, const double* s, const double* c, const InterceptSearch& search,
                        Slope& sum) {
    const double b = search.b();
    const double low = search.low();
    const double high = search.high();
    for (Index i = 0; i < count; ++i) {
      const bool kink = s[i] < smallest_spread && c[i] > 0.0;
      sum.jump += kink && t[i] == b ? c[i] : 0.0;
      sum.left = std::max(sum.left, kink && t[i] < b ? t[i] : -infinity);
      sum.right = std::min(sum.right, kink && t[i] > b ? t[i] : infinity);
      sum.left_count += kink && t[i] < b && t[i] > low ? 1 : 0;
      sum.right_count += kink && t[i] > b && t[i] < high ? 1 : 0;
    }
  }

  const LocalObjective& objective_;
  Index n_;
  double shift_;  ///< of the loss: spreads are then part of m
  bool spreads_;  ///< false: all spreads are the floor, or 0
  double budget_;
  bool rounded_;
  Chunks chunks_;
  Index size_ = 1;
  Index first_ = 0;
  std::vector<double> zeros_;  ///< t_i of the first problem of the group, then those of the next
  std::vector<double> wide_;   ///< likewise the spreads
  std::vector<float> narrow_;
};

Vector LocalObjective::exact_intercept(const ConstMatrixRef& W, const ConstVectorRef& guess) const {
  check_point(W, guess);
  Vector b = Vector::Zero(W.rows());
  if (!fit_intercept_) return b;
  Vector decrease(W.rows());
  Vector size(W.rows());
  Scores scores(*this);
  for (Index first = 0; first < W.rows(); first += scores.size()) {
    const Index count = std::min(scores.size(), W.rows() - first);
    const auto searches = scores.search(first, W.middleRows(first, count), guess.segment(first, count));
    for (Index k = 0; k < count; ++k) {
      const InterceptSearch& search = searches[static_cast<std::size_t>(k)];
      b(first + k) = search.b();
      decrease(first + k) = search.decrease();
      size(first + k) = search.size();
    }
  }
  if (scores.rounded()) {  // one Newton step with the spreads themselves
    constexpr double small = 1e-6;
    Evaluation at(W.rows(), n_features());
    value_and_gradient(W, b, at);
    for (Index k = 0; k < W.rows(); ++k) {
      if (decrease(k) > 0.0 && std::abs(at.intercept(k)) < small * size(k)) b(k) -= at.intercept(k) / decrease(k);
    }
  }
  return b;
}

}  // namespace halosvm
