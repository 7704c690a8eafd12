#include "oracle/allocations.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> count{0};
std::atomic<std::size_t> failing{0};  // number of the allocation that fails, or 0

/// Counts an allocation. \returns whether it is to succeed.
bool counted() { return ++count != failing; }

}  // namespace

std::size_t oracle::allocations() { return count; }

void oracle::fail_allocation(std::size_t number) { failing = number == 0 ? 0 : count + number; }

#ifdef HALOSVM_COUNT_MALLOC

// The linker makes these names: it sends the program's calls of malloc to __wrap_malloc, and calls of __real_malloc to
// malloc.
extern "C" {
void* __real_malloc(std::size_t);
void* __real_calloc(std::size_t, std::size_t);
void* __real_realloc(void*, std::size_t);
void* __real_aligned_alloc(std::size_t, std::size_t);
int __real_posix_memalign(void**, std::size_t, std::size_t);

void* __wrap_malloc(std::size_t size) { return counted() ? __real_malloc(size) : nullptr; }
void* __wrap_calloc(std::size_t n, std::size_t size) { return counted() ? __real_calloc(n, size) : nullptr; }
void* __wrap_realloc(void* memory, std::size_t size) { return counted() ? __real_realloc(memory, size) : nullptr; }
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  return counted() ? __real_aligned_alloc(alignment, size) : nullptr;
}
int __wrap_posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  return counted() ? __real_posix_memalign(memory, alignment, size) : ENOMEM;
}
}

#endif

// The array and nothrow forms of the standard library call this one. std::malloc is counted by itself where it can be.
void* operator new(std::size_t size) {
#ifndef HALOSVM_COUNT_MALLOC
  if (!counted()) throw std::bad_alloc();
#endif
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
