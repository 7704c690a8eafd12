#include "bindings.hpp"

namespace halosvm::bindings {

void bind_linear_model(py::module_& module) {
  module.def(
      "decision_function",
      [](const py::object& means, const Matrix& coef, const Vector& intercept, int n_threads) {
        const std::shared_ptr<const Means> view = means_of(means, "X");
        Matrix out(view->rows(), coef.rows());
        {
          const py::gil_scoped_release release;
          decision_function(model_of(coef, intercept), *view, out, interruptible(n_threads));
        }
        return out;
      },
      py::arg("means"), py::arg("coef"), py::arg("intercept"), py::arg("n_threads") = 0,
      "w_k'x_i + b_k, n_samples x n_problems.");
  module.def(
      "decision_std",
      [](const PyCovariances& covariances, const Matrix& coef, int n_threads) {
        Matrix out(covariances.view->n_samples(), coef.rows());
        {
          const py::gil_scoped_release release;
          decision_std(model_of(coef, Vector::Zero(coef.rows())), *covariances.view, out, interruptible(n_threads));
        }
        return out;
      },
      py::arg("covariances"), py::arg("coef"), py::arg("n_threads") = 0, "sqrt(w_k' S_i w_k), n_samples x n_problems.");
  module.def(
      "move_intercepts",
      [](const Matrix& coef, const Vector& intercept, const Vector& centre) {
        return seen_from(model_of(coef, intercept), centre).intercept;
      },
      py::arg("coef"), py::arg("intercept"), py::arg("centre"), "b_k + w_k'centre, rounded once.");
  module.def("side_probability", py::vectorize(side_probability), py::arg("mean"), py::arg("std"),
             "P(f > 0) for f ~ N(mean, std^2), elementwise.");
  module.def(
      "write_linear_model",
      [](const Matrix& coef, const Vector& intercept, const std::string& estimator, const std::string& loss, double C,
         const std::vector<ClassLabel>& classes, const std::vector<std::string>& feature_names) {
        return write_model({estimator, loss, C, model_of(coef, intercept), classes, feature_names});
      },
      py::arg("coef"), py::arg("intercept"), py::kw_only(), py::arg("estimator"), py::arg("loss"), py::arg("C"),
      py::arg("classes"), py::arg("feature_names"), "The text of a model file.");
  module.def(
      "read_linear_model",
      [](const std::string& text) {
        const SavedModel saved = read_model(text);
        py::dict found;
        found["estimator"] = saved.estimator;
        found["loss"] = saved.loss;
        found["C"] = saved.C;
        found["coef"] = saved.model.coef;
        found["intercept"] = saved.model.intercept;
        found["classes"] = saved.classes;
        found["feature_names"] = saved.feature_names;
        return found;
      },
      py::arg("text"), "The parts of a model file of a linear machine.");
}

}  // namespace halosvm::bindings
