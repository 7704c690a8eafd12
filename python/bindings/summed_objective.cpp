// Objectives whose examples are elsewhere: evaluations and moments as values, and sums of Python callables.

#include "bindings.hpp"

#include "objective.hpp"

#include <optional>

namespace halosvm::bindings {
namespace {

Evaluation make_evaluation(const Vector& value, const Vector& slope, const Vector& square, const Vector& dual,
                           const Vector& dual_positive, const Vector& dual_size, const Vector& curvature,
                           const Matrix& coef, const Vector& intercept) {
  Evaluation out(coef.rows(), coef.cols());
  const auto take = [&](const char* name, const Vector& from, Vector& to) {
    check::same_size(name, from.size(), "coef", coef.rows(), "problems");
    to = from;
  };
  take("value", value, out.value);
  take("slope", slope, out.slope);
  take("square", square, out.square);
  take("dual", dual, out.dual);
  take("dual_positive", dual_positive, out.dual_positive);
  take("dual_size", dual_size, out.dual_size);
  take("curvature", curvature, out.curvature);
  take("intercept", intercept, out.intercept);
  out.coef = coef;
  return out;
}

py::tuple state_of(const Evaluation& at) {
  return py::make_tuple(at.value, at.slope, at.square, at.dual, at.dual_positive, at.dual_size, at.curvature, at.coef,
                        at.intercept);
}

Evaluation evaluation_of(const py::tuple& state) {
  return make_evaluation(state[0].cast<Vector>(), state[1].cast<Vector>(), state[2].cast<Vector>(),
                         state[3].cast<Vector>(), state[4].cast<Vector>(), state[5].cast<Vector>(),
                         state[6].cast<Vector>(), state[7].cast<Matrix>(), state[8].cast<Vector>());
}

/// A part that asks a Python object: part(coef, intercept, floor) -> Evaluation, part.moments() -> Moments.
SummedObjective::Part make_part(const py::object& part, double weight) {
  return {weight,
          [part](const ConstMatrixRef& W, const ConstVectorRef& b, double floor, Evaluation& out) {
            const py::gil_scoped_acquire gil;
            const py::object result = part(Matrix(W), Vector(b), floor);
            if (!py::isinstance<Evaluation>(result)) throw py::type_error("a part must return an Evaluation");
            const auto& at = result.cast<const Evaluation&>();
            check::same_size("a part's coef", at.coef.rows(), "objective", W.rows(), "problems");
            check::same_size("a part's coef", at.coef.cols(), "objective", W.cols(), "features");
            check::require(at.value.allFinite() && at.coef.allFinite() && at.intercept.allFinite(),
                           "a part's evaluation", "must be finite");
            out = at;
          },
          [part] {
            const py::gil_scoped_acquire gil;
            return part.attr("moments")().cast<Moments>();
          }};
}

PySummedObjective make_sum(const std::vector<py::object>& parts, const std::vector<double>& weights, Index n_problems,
                           Index n_features, double lam, const std::string& loss, bool fit_intercept,
                           const std::optional<double>& at_origin, bool many_kinks) {
  check::same_size("weights", static_cast<Index>(weights.size()), "parts", static_cast<Index>(parts.size()), "entries");
  std::vector<SummedObjective::Part> all;
  for (std::size_t i = 0; i < parts.size(); ++i) all.push_back(make_part(parts[i], weights[i]));
  return {SummedObjective(std::move(all), n_problems, n_features, lam, make_loss(loss), fit_intercept, at_origin,
                          many_kinks)};
}

}  // namespace

void bind_summed_objective(py::module_& module) {
  py::class_<Evaluation>(module, "Evaluation", "Value and gradient of J, and the parts of a dual bound.")
      .def(py::init(&make_evaluation), py::kw_only(), py::arg("value"), py::arg("slope"), py::arg("square"),
           py::arg("dual"), py::arg("dual_positive"), py::arg("dual_size"), py::arg("curvature"), py::arg("coef"),
           py::arg("intercept"))
      .def_static(
          "zero", [](Index n_problems, Index n_features) { return Evaluation(n_problems, n_features); },
          py::arg("n_problems"), py::arg("n_features"))
      .def("add", &Evaluation::add, py::arg("other"), py::arg("share"))
      .def_readonly("value", &Evaluation::value)
      .def_readonly("slope", &Evaluation::slope)
      .def_readonly("square", &Evaluation::square)
      .def_readonly("dual", &Evaluation::dual)
      .def_readonly("dual_positive", &Evaluation::dual_positive)
      .def_readonly("dual_size", &Evaluation::dual_size)
      .def_readonly("curvature", &Evaluation::curvature)
      .def_readonly("coef", &Evaluation::coef)
      .def_readonly("intercept", &Evaluation::intercept)
      .def(py::pickle(&state_of, &evaluation_of));
  py::class_<Moments>(module, "Moments", "Location and scale of the features.")
      .def(py::init([](const Vector& mean, const Vector& centre, const Vector& variance, const Vector& widest) {
             check::same_size("centre", centre.size(), "mean", mean.size(), "features");
             check::same_size("variance", variance.size(), "mean", mean.size(), "features");
             return Moments{mean, centre, variance, widest};
           }),
           py::kw_only(), py::arg("mean"), py::arg("centre"), py::arg("variance"), py::arg("widest") = Vector())
      .def_readonly("mean", &Moments::mean)
      .def_readonly("centre", &Moments::centre)
      .def_readonly("variance", &Moments::variance)
      .def_readonly("widest", &Moments::widest)
      .def(py::pickle([](const Moments& at) { return py::make_tuple(at.mean, at.centre, at.variance, at.widest); },
                      [](const py::tuple& state) {
                        return Moments{state[0].cast<Vector>(), state[1].cast<Vector>(), state[2].cast<Vector>(),
                                       state[3].cast<Vector>()};
                      }));
  py::class_<PySummedObjective> sum(module, "SummedObjective", "A sum of objectives, each of them a Python callable.");
  bind_part(sum);
  sum.def(py::init(&make_sum), py::arg("parts"), py::kw_only(), py::arg("weights"), py::arg("n_problems"),
          py::arg("n_features"), py::arg("lam"), py::arg("loss") = "expected_hinge", py::arg("fit_intercept") = true,
          py::arg("at_origin") = py::none(), py::arg("many_kinks") = false);
}

}  // namespace halosvm::bindings
