// Measurements: an array with errors and weights enters, rows sorted into cells of one factorisation leave.

#include "population/measurements.hpp"

#include "halosvm/core/check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>

namespace halosvm {
namespace {

constexpr Index rows_at_a_time = 256;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29U);
}

/// What makes two rows share a factorisation: the values that are there, and the errors of these.
class Key {
 public:
  explicit Key(const Measurements::Prepared& data)
      : data_(data),
        there_(static_cast<std::size_t>(data.n_features())),
        scratch_(static_cast<std::size_t>(data.noise.scratch_size(1) + data.n_features())) {}

  void read(Index row) {
    const Index d = data_.n_features();
    population::mark_present(data_.data.means().block({row, 1}, scratch_.data()).data(), d, there_.data());
    data_.noise.signature(row, there_.data(), errors_, scratch_.data());
  }

  std::uint64_t hash() const {
    std::uint64_t out = 1;
    for (const unsigned char there : there_) out = mixed(out, there);
    for (const double value : errors_) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      out = mixed(out, bits);
    }
    return out;
  }

  bool operator==(const Key& other) const { return there_ == other.there_ && errors_ == other.errors_; }

 private:
  const Measurements::Prepared& data_;
  std::vector<unsigned char> there_;
  std::vector<double> errors_;
  std::vector<double> scratch_;
};

void check_limits(const Limits& limits, Index row, Index column, Index entry, double x) {
  if (!limits.at(entry)) return;
  const double lower = limits.lower_at(entry);
  const double upper = limits.upper_at(entry);
  const bool above = lower > -infinity;
  const auto within = [](double limit) { return std::abs(limit) <= largest_value || std::isinf(limit); };
  if (!within(lower) || !within(upper) || !(lower < infinity) || !(upper > -infinity)) {
    check::fail_at(within(lower) && lower < infinity ? "X_upper" : "X_lower", row, column,
                   within(lower) && lower < infinity ? upper : lower,
                   "it must be finite and at most 1e150 in size, or NaN where there is no limit");
  }
  if (!std::isnan(x)) {
    check::fail_at(
        above ? "X_lower" : "X_upper", row, column, above ? lower : upper,
        "X has the value " + check::text(x) + " there; a reading has a value or limits, and NaN for the other");
  }
  if (!(lower < upper)) {
    check::fail_at("X_lower", row, column, lower, "it must be below X_upper, which is " + check::text(upper));
  }
}

bool any_limit(const Limits& limits, Index begin, Index count) {
  for (Index j = 0; j < count; ++j) {
    if (limits.at(begin + j)) return true;
  }
  return false;
}

/// Throws for values and limits that make no sense; whether any value is missing.
bool check_values(const Gaussians& X, const Limits& limits) {
  const Index n = X.n_samples();
  const Index d = X.n_features();
  bool any_missing = false;
  std::vector<double> scratch(static_cast<std::size_t>(rows_at_a_time * d));
  for (Index begin = 0; begin < n; begin += rows_at_a_time) {
    const ConstMatrixMap block = X.means().block({begin, std::min(rows_at_a_time, n - begin)}, scratch.data());
    for (Index i = 0; i < block.rows(); ++i) {
      for (Index j = 0; j < d; ++j) {
        const double x = block(i, j);
        const Index entry = j + (begin + i) * d;
        if (limits.any()) check_limits(limits, begin + i, j, entry, x);
        if (std::isnan(x)) {
          any_missing = any_missing || !limits.any() || !limits.at(entry);
        } else if (!(std::abs(x) <= largest_value)) {
          check::fail_at("X", begin + i, j, x,
                         "it must be finite and at most 1e150 in size, or NaN where it is missing");
        }
      }
    }
  }
  return any_missing;
}

}  // namespace

Measurements::Prepared::Prepared(const Gaussians& X, const double* given, const Execution& execution,
                                 const Limits& given_limits)
    : data(X), noise(X.covariances()), limits(given_limits), any_missing(check_values(X, given_limits)) {
  const Index n = X.n_samples();
  const Index d = X.n_features();
  std::vector<Index> limited;
  for (Index i = 0; i < n; ++i) {
    const double weight = given != nullptr ? given[i] : 1.0;
    if (!(weight >= 0.0 && std::isfinite(weight))) {
      check::fail_at("sample_weight", i, -1, weight, "it must be finite and >= 0");
    }
    if (weight == 0.0) continue;
    total_weight += weight;
    if (limits.any() && any_limit(limits, i * d, d)) {
      limited.push_back(i);
      continue;
    }
    rows.push_back(i);
    weights.push_back(weight);
  }
  if (!(total_weight > 0.0 && std::isfinite(total_weight))) {
    check::fail("sample_weight", "sums to " + check::text(total_weight) + "; the sum must be positive and finite");
  }
  n_plain = static_cast<Index>(rows.size());
  find_cells(execution);
  for (const Index i : limited) {
    rows.push_back(i);
    weights.push_back(given != nullptr ? given[i] : 1.0);
  }
}

void Measurements::Prepared::find_cells(const Execution& execution) {
  const Index n = size();
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(n));
  const Chunks chunks(n, 1024);
  run_tasks(chunks.count(), execution, [&](Index chunk, int /*slot*/, Checkpoint& checkpoint) {
    Key key(*this);
    for (Index at = chunks.begin(chunk); at < chunks.end(chunk); ++at) {
      if (at % 64 == 0) checkpoint();
      key.read(rows[static_cast<std::size_t>(at)]);
      hashes[static_cast<std::size_t>(at)] = key.hash();
    }
  });
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(), [&](Index a, Index b) {
    const auto of_a = hashes[static_cast<std::size_t>(a)];
    const auto of_b = hashes[static_cast<std::size_t>(b)];
    return of_a < of_b || (of_a == of_b && a < b);
  });
  std::vector<Index> starts;
  Key first(*this);
  Key other(*this);
  for (Index at = 0; at < n; ++at) {
    const auto here = static_cast<std::size_t>(order[static_cast<std::size_t>(at)]);
    const auto before = static_cast<std::size_t>(order[static_cast<std::size_t>(std::max<Index>(at - 1, 0))]);
    if (at > 0 && hashes[here] == hashes[before]) {
      other.read(rows[here]);
      if (at - 1 == starts.back()) first.read(rows[before]);
      if (first == other) continue;
    }
    starts.push_back(at);
    if (4 * static_cast<Index>(starts.size()) > n + 8) return;
  }
  starts.push_back(n);
  cells = std::move(starts);
  shared = true;
  std::vector<Index> sorted_rows;
  std::vector<double> sorted_weights;
  for (const Index at : order) {
    sorted_rows.push_back(rows[static_cast<std::size_t>(at)]);
    sorted_weights.push_back(weights[static_cast<std::size_t>(at)]);
  }
  rows = std::move(sorted_rows);
  weights = std::move(sorted_weights);
  sum_cells(execution);
}

void Measurements::Prepared::sum_cells(const Execution& execution) {
  const Index d = n_features();
  if (n_cells() * d > size() + 1024) return;
  cell_weights.resize(n_cells());
  cell_means.resize(n_cells(), d);
  cell_scatters.setZero(n_cells() * d, d);
  run_tasks(n_cells(), execution, [&](Index cell, int /*slot*/, Checkpoint& checkpoint) {
    const Index begin = cells[static_cast<std::size_t>(cell)];
    const Index end = cells[static_cast<std::size_t>(cell) + 1];
    Matrix scratch(rows_at_a_time, d);
    Matrix block;
    Vector sum = Vector::Zero(d);
    double weight = 0.0;
    for (Index i = begin; i < end; ++i) {
      const ConstMatrixMap x = means(i, 1, scratch.data());
      for (Index j = 0; j < d; ++j) {
        if (!std::isnan(x(0, j))) sum(j) += weights[static_cast<std::size_t>(i)] * x(0, j);
      }
      weight += weights[static_cast<std::size_t>(i)];
    }
    cell_weights(cell) = weight;
    cell_means.row(cell) = sum / weight;
    MatrixMap scatter(cell_scatters.data() + cell * d * d, d, d);
    for (Index at = begin; at < end; at += rows_at_a_time) {
      checkpoint();
      const Index count = std::min(rows_at_a_time, end - at);
      block = means(at, count, scratch.data()).rowwise() - cell_means.row(cell);
      block = block.array().isNaN().select(0.0, block);
      for (Index i = 0; i < count; ++i) block.row(i) *= std::sqrt(weights[static_cast<std::size_t>(at + i)]);
      scatter.noalias() += block.transpose() * block;
    }
  });
}

Measurements::Measurements(const Gaussians& X, const double* weights, const Execution& execution,
                           const Limits& limits) {
  if (X.means().sparse()) X.means().check_once("X", execution);  // of dense ones NaN is a value that is missing
  X.covariances().check_once("covariances", execution);
  prepared_ = std::make_unique<Prepared>(X, weights, execution, limits);
}
Measurements::~Measurements() = default;
Measurements::Measurements(Measurements&&) noexcept = default;

}  // namespace halosvm
