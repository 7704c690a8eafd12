/// \file
/// Products with factors of 1 to 8 columns, stored row by row, in one stream over their numbers. Private to
/// low_rank.cpp.
///
/// Weights and sums are wide: each feature has its number once for each column, so that all run side by side.
#pragma once

#include "halosvm/core/types.hpp"

#include <type_traits>

namespace halosvm {

inline constexpr Index largest_small_rank = 8;

/// Numbers that are worked on at once, the same columns each time.
template <int rank>
inline constexpr Index factor_lanes = rank <= 2 ? 16 : 4 * rank;

/// p = F'w. \param size of F, features times rank.
template <int rank, class T>
void project_small(const T* __restrict factor, const double* __restrict wide, Index size, double* __restrict p) {
  constexpr Index half = factor_lanes<rank> / 2;  // two sums at once hide the latency of additions
  using Half = Eigen::Array<double, half, 1>;
  const auto product = [&](Index at) {
    const auto values = Eigen::Map<const Eigen::Array<T, half, 1>>(factor + at).template cast<double>();
    return Half(values * Eigen::Map<const Half>(wide + at));
  };
  Half first = Half::Zero();
  Half second = Half::Zero();
  Index j = 0;
  for (; j + 2 * half <= size; j += 2 * half) {
    first += product(j);
    second += product(j + half);
  }
  first += second;
  for (Index k = 0; k < rank; ++k) {
    p[k] = first(k);
    for (Index l = k + rank; l < half; l += rank) p[k] += first(l);
  }
  for (; j < size; ++j) p[j % rank] += static_cast<double>(factor[j]) * wide[j];
}

/// The columns of \p wide, added up, += F p.
template <int rank, class T>
void add_small(const T* __restrict factor, const double* __restrict p, Index size, double* __restrict wide) {
  constexpr Index lanes = factor_lanes<rank>;
  double pattern[lanes];
  for (Index l = 0; l < lanes; ++l) pattern[l] = p[l % rank];
  Index j = 0;
  for (; j + lanes <= size; j += lanes) {
    for (Index l = 0; l < lanes; ++l) wide[j + l] += static_cast<double>(factor[j + l]) * pattern[l];
  }
  for (; j < size; ++j) wide[j] += static_cast<double>(factor[j]) * pattern[j % rank];
}

/// Calls \p use with an integral constant that is the rank, 1 to 8.
template <class Use>
void with_small_rank(Index rank, const Use& use) {
  switch (rank) {
    case 1:
      return use(std::integral_constant<int, 1>());
    case 2:
      return use(std::integral_constant<int, 2>());
    case 3:
      return use(std::integral_constant<int, 3>());
    case 4:
      return use(std::integral_constant<int, 4>());
    case 5:
      return use(std::integral_constant<int, 5>());
    case 6:
      return use(std::integral_constant<int, 6>());
    case 7:
      return use(std::integral_constant<int, 7>());
    default:
      return use(std::integral_constant<int, 8>());
  }
}

}  // namespace halosvm
