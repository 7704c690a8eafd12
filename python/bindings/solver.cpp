#include "bindings.hpp"
#include "objective.hpp"

#include <cstdint>
#include <functional>

namespace halosvm::bindings {
namespace {

Averaging averaging_of(const std::string& name) {
  if (name == "weighted") return Averaging::weighted;
  if (name == "none") return Averaging::none;
  check::fail("averaging", "is '" + name + "'; it must be 'weighted' or 'none'");
}

Method method_of(const std::string& name) {
  if (name == "auto") return Method::automatic;
  if (name == "lbfgs") return Method::lbfgs;
  if (name == "interior_point") return Method::interior_point;
  if (name == "dual_coordinate") return Method::dual_coordinate;
  check::fail("method", "is '" + name + "'; it must be 'auto', 'lbfgs', 'interior_point' or 'dual_coordinate'");
}

py::dict to_dict(const Result& result) {
  py::dict out;
  out["coef"] = result.model.coef;
  out["intercept"] = result.model.intercept;
  out["objective"] = result.objective;
  out["lower_bound"] = result.lower_bound;
  out["suboptimality"] = result.suboptimality;
  out["steps"] = result.steps;
  out["epochs"] = result.epochs;
  out["converged"] = converged(result.status);
  out["status"] = name(result.status);
  out["message"] = message(result.status);
  return out;
}

/// A solver's progress hook that calls a Python function, if there is one.
std::function<void(const Progress&)> reporter(const py::object& report) {
  if (report.is_none()) return {};
  return [&report](const Progress& progress) {
    const py::gil_scoped_acquire gil;
    report(progress.epochs, progress.objective, progress.suboptimality);
  };
}

/// Binds the solvers that read all examples in each iteration. \tparam Held what holds the objective.
template <class Held>
void bind_minimize(py::module_& module) {
  const BatchSettings defaults;
  module.def(
      "minimize",
      [](const Held& objective, const Matrix& coef, const Vector& intercept, Index max_iterations, double tolerance,
         const py::object& report, const std::string& method) {
        const BatchSettings settings{max_iterations, tolerance, reporter(report), method_of(method)};
        const LinearModel start = model_of(coef, intercept);
        Result result;
        {
          const py::gil_scoped_release release;
          result = minimize(objective.objective, start, settings);
        }
        return to_dict(result);
      },
      py::arg("objective"), py::kw_only(), py::arg("coef"), py::arg("intercept"),
      py::arg("max_iterations") = defaults.max_iterations, py::arg("tolerance") = defaults.tolerance,
      py::arg("report") = py::none(), py::arg("method") = "auto", "The minimum by a method that reads all examples.");
}

py::dict minimize_sgd(const PyObjective& objective, const Matrix& coef, const Vector& intercept, Index batch_size,
                      Index max_epochs, Index max_steps, double tolerance, const std::string& averaging,
                      std::uint64_t seed, const py::object& report, bool proximal) {
  const SgdSettings settings{batch_size, max_epochs,       max_steps, tolerance, averaging_of(averaging),
                             seed,       reporter(report), proximal};
  const LinearModel start = model_of(coef, intercept);
  Result result;
  {
    const py::gil_scoped_release release;
    result = minimize(objective.objective, start, settings);
  }
  return to_dict(result);
}

py::dict judged(const Vector& objective, const Vector& lower_bound, const Vector& error, Index steps,
                Index max_iterations, double tolerance) {
  check::same_size("lower_bound", lower_bound.size(), "objective", objective.size(), "problems");
  check::same_size("error", error.size(), "objective", objective.size(), "problems");
  Result result;
  result.objective = objective;
  result.lower_bound = lower_bound;
  result.steps = steps;
  BatchSettings settings;
  settings.max_iterations = max_iterations;
  settings.tolerance = tolerance;
  judge(settings, error, result);
  py::dict out;
  out["suboptimality"] = result.suboptimality;
  out["status"] = name(result.status);
  out["message"] = message(result.status);
  return out;
}

}  // namespace

void bind_solver(py::module_& module) {
  const SgdSettings defaults;
  module.def("minimize_sgd", &minimize_sgd, py::arg("objective"), py::kw_only(), py::arg("coef"), py::arg("intercept"),
             py::arg("batch_size") = defaults.batch_size, py::arg("max_epochs") = defaults.max_epochs,
             py::arg("max_steps") = defaults.max_steps, py::arg("tolerance") = defaults.tolerance,
             py::arg("averaging") = "weighted", py::arg("seed") = defaults.seed, py::arg("report") = py::none(),
             py::arg("proximal") = defaults.proximal, "Stochastic gradient descent from (coef, intercept).");
  bind_minimize<PyObjective>(module);
  bind_minimize<PySummedObjective>(module);
  module.def("judge", &judged, py::arg("objective"), py::arg("lower_bound"), py::arg("error"), py::arg("steps"),
             py::arg("max_iterations"), py::arg("tolerance"),
             "What is certified of models whose objectives are known up to an error.");
  module.def("sgd_row", &sgd_row, py::arg("seed"), py::arg("draw"), py::arg("n_rows"),
             "The row that one draw of a run reads.");
}

}  // namespace halosvm::bindings
