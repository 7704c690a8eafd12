#include "bindings.hpp"

#include <cstdint>
#include <optional>

#include "halosvm/core/check.hpp"

namespace halosvm::bindings {

void bind_calibration(py::module_& module) {
  module.def(
      "fit_platt",
      [](const Vector& decision, const py::array_t<bool, py::array::c_style>& positive,
         const std::optional<Vector>& weights) {
        check::same_size("y", positive.size(), "decision", decision.size(), "values");
        if (weights) check::same_size("sample_weight", weights->size(), "decision", decision.size(), "values");
        const auto* flags = reinterpret_cast<const std::uint8_t*>(positive.data());
        const PlattScaling fitted = fit_platt(decision, flags, weights ? weights->data() : nullptr);
        return py::make_tuple(fitted.slope, fitted.offset);
      },
      py::arg("decision"), py::arg("positive"), py::arg("weights") = py::none(),
      "Slope A and offset B of p = 1 / (1 + exp(A f + B)).");
  module.def("platt_probability", py::vectorize([](double mean, double std, double slope, double offset) {
               return PlattScaling{slope, offset}.expected_probability(mean, std);
             }),
             py::arg("mean"), py::arg("std"), py::arg("slope"), py::arg("offset"),
             "E P(y = 1 | F) for F ~ N(mean, std^2), elementwise.");
}

}  // namespace halosvm::bindings
