#include "bindings.hpp"

#include <limits>

namespace halosvm::bindings {
namespace {

/// What was settled when this module was compiled.
py::dict build_info() {
  py::dict info;
  info["isa"] = HALOSVM_ISA;
  info["compiler"] = HALOSVM_COMPILER;
  info["eigen"] = HALOSVM_EIGEN_VERSION;
  info["pybind11"] = PYBIND11_TOSTRING(PYBIND11_VERSION_MAJOR) "." PYBIND11_TOSTRING(
      PYBIND11_VERSION_MINOR) "." PYBIND11_TOSTRING(PYBIND11_VERSION_PATCH);
  return info;
}

}  // namespace

void bind_config(py::module_& module) {
  module.def("build_info", &build_info, "What was settled when this module was compiled.");
  module.def(
      "thread_count", [] { return thread_count(std::numeric_limits<Index>::max(), {}); },
      "Number of threads of a call that leaves the choice to the core.");
}

}  // namespace halosvm::bindings
