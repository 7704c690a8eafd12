// Table of contents of halosvm._core, compiled as halosvm._core_<isa> once for each instruction set.

#include "bindings.hpp"

PYBIND11_MODULE(HALOSVM_MODULE, module, pybind11::mod_gil_not_used()) {
  using namespace halosvm::bindings;  // NOLINT(google-build-using-namespace)
  module.doc() = "The compiled core of halosvm; private, its functions may change at any time.";
  bind_normal(module);
  bind_loss(module);
  bind_gaussians(module);
  bind_subspace(module);
  bind_summed_objective(module);
  bind_empirical_bayes(module);
  bind_features(module);
  bind_kernel(module);
  bind_objective(module);
  bind_solver(module);
  bind_stream(module);
  bind_linear_model(module);
  bind_calibration(module);
  bind_config(module);
  bind_left_behind(module);
}
