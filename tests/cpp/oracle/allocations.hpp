/// \file
/// Counts every allocation that this executable and the library make: operator new, and where the linker allows it
/// malloc and its kin.
#pragma once

#include <cstddef>

namespace oracle {

/// Allocations by all threads since the program began.
std::size_t allocations();

/// Number of allocations that \p call makes.
template <class Call>
std::size_t allocations_in(const Call& call) {
  const std::size_t before = allocations();
  call();
  return allocations() - before;
}

}  // namespace oracle
