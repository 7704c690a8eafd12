/// \file
/// The objective together with the arrays that it looks into; shared by the bindings of the solvers.
#pragma once

#include "bindings.hpp"

#include <utility>

namespace halosvm::bindings {

struct PyObjective {
  LocalObjective objective;
  std::vector<py::object> owners;
  Vector rest{};  ///< the centre that means are to be seen from less the one that they can be seen from; empty for 0
};

struct PySummedObjective {
  SummedObjective objective;
};

inline void evaluate(const PySummedObjective& held, const Matrix& W, const Vector& b, double floor, Evaluation& out) {
  held.objective.evaluate(W, b, floor, out);
}

/// \p b is that of means seen from the centre.
inline void evaluate(const PyObjective& held, const Matrix& W, const Vector& b, double floor, Evaluation& out) {
  const bool moved = held.rest.size() > 0;
  held.objective.evaluate(W, moved ? Vector(b - W * held.rest) : b, floor, out);
  if (moved) out.coef -= out.intercept * held.rest.transpose();
}

/// Binds what makes an objective a part of a sum: object(W, b, floor) -> Evaluation, object.moments() -> Moments;
/// and the best intercepts.
template <class Held>
void bind_part(py::class_<Held>& held) {
  held.def(
          "__call__",
          [](const Held& self, const Matrix& W, const Vector& b, double floor) {
            Evaluation out(self.objective.n_problems(), self.objective.n_features());
            const py::gil_scoped_release release;
            evaluate(self, W, b, floor, out);
            return out;
          },
          py::arg("W"), py::arg("b"), py::arg("floor") = 0.0)
      .def(
          "exact_intercept",
          [](const Held& self, const Matrix& W) {
            const py::gil_scoped_release release;
            return self.objective.exact_intercept(W, Vector::Zero(W.rows()), 0.0);
          },
          py::arg("W"))
      .def("has_many_kinks",
           [](const Held& self) {
             const py::gil_scoped_release release;
             return self.objective.has_many_kinks();
           })
      .def("moments", [](const Held& self) {
        const py::gil_scoped_release release;
        return self.objective.moments();
      });
}

}  // namespace halosvm::bindings
