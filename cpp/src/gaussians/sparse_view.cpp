// Sparse arrays in compressed rows: what is stored, and its checks.

#include "halosvm/gaussians/sparse_view.hpp"

#include "halosvm/core/check.hpp"

#include <cmath>
#include <vector>

namespace halosvm {
namespace {

Index bytes_of(const SparseValues& values) { return std::holds_alternative<const double*>(values) ? 8 : 4; }
Index bytes_of(const SparseIndices& indices) { return std::holds_alternative<const std::int64_t*>(indices) ? 8 : 4; }

}  // namespace

SparseView::SparseView(SparseValues values, SparseIndices columns, SparseIndices offsets, Index rows, Index cols,
                       bool squared)
    : values_(values), columns_(columns), offsets_(offsets), rows_(rows), cols_(cols), squared_(squared) {
  check::require(rows >= 0 && cols >= 0, "array", "has a negative number of rows or columns");
  std::visit([](const auto* pointer) { check::given(pointer, "offsets"); }, offsets);
  check::require(offset(0) >= 0 && stored() >= 0, "offsets", "must be >= 0 and ascend");
  if (stored() == 0) return;
  std::visit([](const auto* pointer) { check::given(pointer, "values"); }, values);
  std::visit([](const auto* pointer) { check::given(pointer, "columns"); }, columns);
}

Index SparseView::row_bytes() const {
  const Index each = bytes_of(values_) + bytes_of(columns_);
  return bytes_of(offsets_) + (rows_ > 0 ? (each * stored() + rows_ - 1) / rows_ : 0);
}

void SparseView::prefetch([[maybe_unused]] Index row) const {
#if defined(__GNUC__)
  constexpr Index cache_line = 64;
  constexpr Index farthest = 4096;
  as_stored([&](const auto* values, const auto* columns, const auto* offsets) {
    const auto begin = static_cast<Index>(offsets[row]);
    const auto count = static_cast<Index>(offsets[row + 1]) - begin;
    const auto fetch = [&](const auto* from) {
      const char* start = reinterpret_cast<const char*>(from + begin);
      const Index end = std::min(count * static_cast<Index>(sizeof(*from)), farthest);
      for (Index at = 0; at < end; at += cache_line) __builtin_prefetch(start + at);
    };
    fetch(values);
    fetch(columns);
  });
#endif
}

void SparseView::check(const std::string& argument, double lowest, const std::string& rule,
                       const Execution& execution) const {
  const double highest = squared_ ? std::sqrt(largest_value) : largest_value;
  const Chunks chunks(rows_, 1024);
  std::vector<Index> found(static_cast<std::size_t>(chunks.count()), -1);
  as_stored([&](const auto* values, const auto* columns, const auto* offsets) {
    const auto refused = [&](Index row) {
      Index last = -1;
      for (auto at = static_cast<Index>(offsets[row]); at < static_cast<Index>(offsets[row + 1]); ++at) {
        const auto x = static_cast<double>(values[at]);
        const auto column = static_cast<Index>(columns[at]);
        if (!(x >= lowest && x <= highest) || column <= last || column >= cols_) return at;
        last = column;
      }
      return Index{-1};
    };
    run_tasks(chunks.count(), execution, [&](Index chunk, int, Checkpoint& checkpoint) {
      for (Index row = chunks.begin(chunk); row < chunks.end(chunk); ++row) {
        checkpoint();
        if (offsets[row + 1] < offsets[row] || refused(row) >= 0) {
          found[static_cast<std::size_t>(chunk)] = row;
          return;
        }
      }
    });
    for (const Index row : found) {
      if (row < 0) continue;
      check::require(offsets[row + 1] >= offsets[row], argument,
                     "has offsets of rows that descend, at row " + std::to_string(row));
      const Index at = refused(row);
      const auto x = static_cast<double>(values[at]);
      const auto column = static_cast<Index>(columns[at]);
      check::require(!(x >= lowest && x <= highest), argument,
                     "has column " + std::to_string(column) + " in row " + std::to_string(row) +
                         ", where columns must ascend and be below " + std::to_string(cols_));
      const bool overflows = std::isfinite(x) && std::abs(x) > highest;
      check::fail_at(argument, row, column, x,
                     overflows ? "values beyond " + check::text(highest) + " overflow: rescale" : rule);
    }
  });
}

}  // namespace halosvm
