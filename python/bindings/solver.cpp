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

/// Binds a solver that reads all examples in each iteration. \tparam Held what holds the objective.
template <class Held, class Solver>
void bind_batch(py::module_& module, const char* name, Solver solver, const char* doc) {
  const BatchSettings defaults;
  module.def(
      name,
      [solver](const Held& objective, const Matrix& coef, const Vector& intercept, Index max_iterations,
               double tolerance, const py::object& report) {
        const BatchSettings settings{max_iterations, tolerance, reporter(report)};
        const LinearModel start = model_of(coef, intercept);
        Result result;
        {
          const py::gil_scoped_release release;
          result = solver(objective.objective, start, settings);
        }
        return to_dict(result);
      },
      py::arg("objective"), py::kw_only(), py::arg("coef"), py::arg("intercept"),
      py::arg("max_iterations") = defaults.max_iterations, py::arg("tolerance") = defaults.tolerance,
      py::arg("report") = py::none(), doc);
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

}  // namespace

void bind_solver(py::module_& module) {
  const SgdSettings defaults;
  module.def("minimize_sgd", &minimize_sgd, py::arg("objective"), py::kw_only(), py::arg("coef"), py::arg("intercept"),
             py::arg("batch_size") = defaults.batch_size, py::arg("max_epochs") = defaults.max_epochs,
             py::arg("max_steps") = defaults.max_steps, py::arg("tolerance") = defaults.tolerance,
             py::arg("averaging") = "weighted", py::arg("seed") = defaults.seed, py::arg("report") = py::none(),
             py::arg("proximal") = defaults.proximal, "Stochastic gradient descent from (coef, intercept).");
  const auto best = [](const Objective& objective, const LinearModel& start, const BatchSettings& settings) {
    return minimize(objective, start, settings);
  };
  bind_batch<PyObjective>(module, "minimize", best, "The solver that suits the objective.");
  bind_batch<PySummedObjective>(module, "minimize", best, "The solver that suits the objective.");
  bind_batch<PyObjective>(module, "minimize_lbfgs", &minimize_lbfgs, "L-BFGS.");
  bind_batch<PySummedObjective>(module, "minimize_lbfgs", &minimize_lbfgs, "L-BFGS.");
  bind_batch<PyObjective>(module, "minimize_interior_point", &minimize_interior_point,
                          "Primal-dual interior-point method.");
  bind_batch<PySummedObjective>(module, "minimize_interior_point", &minimize_interior_point,
                                "Primal-dual interior-point method.");
  module.def("sgd_row", &sgd_row, py::arg("seed"), py::arg("draw"), py::arg("n_rows"),
             "The row that one draw of a run reads.");
}

}  // namespace halosvm::bindings
