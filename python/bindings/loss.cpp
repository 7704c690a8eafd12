#include "bindings.hpp"

namespace halosvm::bindings {
namespace {

/// Applies one of a loss's two block functions to arrays of equal shape.
template <class Function>
py::tuple evaluate(const Doubles& m, const Doubles& s, const Function& function) {
  if (m.size() != s.size()) {
    throw py::value_error("m has " + std::to_string(m.size()) + " values, s has " + std::to_string(s.size()));
  }
  const std::vector<py::ssize_t> shape(m.shape(), m.shape() + m.ndim());
  Doubles a(shape);
  Doubles b(shape);
  Doubles c(shape);
  function(m.size(), m.data(), s.data(), a.mutable_data(), b.mutable_data(), c.mutable_data());
  return py::make_tuple(a, b, c);
}

}  // namespace

void bind_loss(py::module_& module) {
  module.def("loss_names", &loss_names, "Names of all losses.");
  module.def(
      "loss_traits",
      [](const std::string& name) {
        const LossTraits& traits = make_loss(name)->traits();
        py::dict out;
        out["convex"] = traits.convex();
        out["has_radius"] = traits.has_radius;
        out["kinked"] = traits.kinked;
        out["margin"] = traits.margin;
        out["steepest"] = traits.steepest;
        return out;
      },
      py::arg("loss"), "What the package asks of a loss.");
  module.def(
      "evaluate_loss",
      [](const std::string& name, const Doubles& m, const Doubles& s) {
        const auto loss = make_loss(name);
        return evaluate(m, s, [&](auto... arguments) { loss->first(arguments...); });
      },
      py::arg("loss"), py::arg("m"), py::arg("s"), "psi(m, s), psi_m and psi_s / s, elementwise.");
  module.def(
      "loss_curvature",
      [](const std::string& name, const Doubles& m, const Doubles& s) {
        const auto loss = make_loss(name);
        return evaluate(m, s, [&](auto... arguments) { loss->second(arguments...); });
      },
      py::arg("loss"), py::arg("m"), py::arg("s"), "psi_mm, psi_ms and psi_ss, elementwise.");
}

}  // namespace halosvm::bindings
