/// \file
/// Counts every allocation that this executable and the library make, and makes one of them fail: operator new, and
/// where the linker allows it malloc and its kin.
#pragma once

#include <cstddef>

namespace oracle {

/// Allocations by all threads since the program began.
std::size_t allocations();

/// Makes the allocation of that number from now, 1 for the next one, fail once; 0 for none.
void fail_allocation(std::size_t number);

/// Number of allocations that \p call makes.
template <class Call>
std::size_t allocations_in(const Call& call) {
  const std::size_t before = allocations();
  call();
  return allocations() - before;
}

}  // namespace oracle
