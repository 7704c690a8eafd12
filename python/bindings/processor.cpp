// The module halosvm._processor: what the processor and the operating system support. It runs before a build of the
// core is chosen, hence on every processor.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "processor_level.hpp"

namespace {

PyObject* x86_64_level(PyObject* /*module*/, PyObject* /*no arguments*/) {
  return PyLong_FromLong(halosvm::processor_level());
}

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
