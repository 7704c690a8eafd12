/// \file
/// What the processor and the operating system support. Standard C++ alone: the build includes it as well.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define HALOSVM_X86_64
#include <cpuid.h>
#endif

namespace halosvm {

#ifdef HALOSVM_X86_64

/// The features of x86-64-v3 that older Clangs do not know by name.
inline bool has_f16c_lzcnt_movbe() {
  constexpr unsigned f16c = 1U << 29U;
  constexpr unsigned movbe = 1U << 22U;
  constexpr unsigned lzcnt = 1U << 5U;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & f16c) == 0 || (c & movbe) == 0) return false;
  return __get_cpuid(0x80000001U, &a, &b, &c, &d) != 0 && (c & lzcnt) != 0;
}

/// Level 1 to 4 of x86-64 that this processor reaches; 0 for other processors.
// __builtin_cpu_supports answers no when the operating system does not save the registers of a feature.
inline int processor_level() {
  __builtin_cpu_init();
  if (!(__builtin_cpu_supports("popcnt") && __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") &&
        __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2"))) {
    return 1;
  }
  if (!(__builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") && has_f16c_lzcnt_movbe())) {
    return 2;
  }
  if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))) {
    return 3;
  }
  return 4;
}

#else

inline int processor_level() { return 0; }

#endif

}  // namespace halosvm
