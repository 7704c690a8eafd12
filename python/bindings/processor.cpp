// The module halosvm._processor: what the processor and the operating system support. It runs before a build of the
// core is chosen, hence on every processor.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HALOSVM_X86_64
#include <cpuid.h>
#endif

namespace {

#ifdef HALOSVM_X86_64

/// The features of x86-64-v3 that older Clangs do not know by name.
bool has_f16c_lzcnt_movbe() {
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

// __builtin_cpu_supports answers no when the operating system does not save the registers of a feature.
int level() {
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

int level() { return 0; }

#endif

PyObject* x86_64_level(PyObject* /*module*/, PyObject* /*no arguments*/) { return PyLong_FromLong(level()); }

PyMethodDef methods[] = {
    {"x86_64_level", x86_64_level, METH_NOARGS,
     "x86_64_level()\n--\n\nLevel 1 to 4 of x86-64 that this processor reaches; 0 for other processors."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef_Slot slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_processor",
                          "What the processor and the operating system support.",
                          0,
                          methods,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__processor() { return PyModuleDef_Init(&definition); }
