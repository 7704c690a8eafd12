/// \file
/// Limits of readings that are not known themselves (spec O.3): "below 0.25", "above 3", or between two numbers.
#pragma once

#include "halosvm/core/types.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Views of n_samples x n_features numbers, row after row; NaN where there is no limit. Where there is one, the value
/// itself is NaN, and its error is that of the reading.
struct Limits {
  const double* lower = nullptr;  ///< the reading lies above; null: none does
  const double* upper = nullptr;  ///< the reading lies below; null: none does

  /// Whether there are limits of either side.
  bool any() const { return lower != nullptr || upper != nullptr; }
  /// Whether entry (row, column), as they stand in memory, has a limit.
  bool at(Index entry) const { return lower_at(entry) > -infinity || upper_at(entry) < infinity; }
  /// The lower limit of an entry, or -infinity.
  double lower_at(Index entry) const {
    return lower != nullptr && lower[entry] == lower[entry] ? lower[entry] : -infinity;
  }
  /// The upper limit of an entry, or infinity.
  double upper_at(Index entry) const {
    return upper != nullptr && upper[entry] == upper[entry] ? upper[entry] : infinity;
  }
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
