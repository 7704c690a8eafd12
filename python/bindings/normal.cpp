#include "bindings.hpp"
#include "halosvm/core/normal.hpp"

namespace halosvm::bindings {

void bind_normal(py::module_& module) {
  module.def("normal_pdf", py::vectorize(normal_pdf), py::arg("z"), "phi(z), elementwise.");
  module.def("normal_cdf", py::vectorize(normal_cdf), py::arg("z"), "Phi(z), elementwise.");
  module.def(
      "normal_tail",
      [](const Doubles& t) {
        std::vector<py::ssize_t> shape(t.shape(), t.shape() + t.ndim());
        Doubles density(shape);
        Doubles upper(shape);
        Doubles hinge(shape);
        Doubles squared_hinge(shape);
        for (py::ssize_t i = 0; i < t.size(); ++i) {
          const NormalTail tail = normal_tail(t.data()[i]);
          density.mutable_data()[i] = tail.density;
          upper.mutable_data()[i] = tail.upper;
          hinge.mutable_data()[i] = tail.hinge;
          squared_hinge.mutable_data()[i] = tail.squared_hinge;
        }
        return py::make_tuple(density, upper, hinge, squared_hinge);
      },
      py::arg("t"), "phi(t), Phi(-t), E max(0, Z - t) and E max(0, Z - t)^2 for t >= 0, elementwise.");
}

}  // namespace halosvm::bindings
