#include "bindings.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "halosvm/core/check.hpp"
#include "halosvm/objective/exact_values.hpp"
#include "objective.hpp"

namespace halosvm::bindings {
namespace {

PyObjective make_objective(const PyGaussians& data, const py::array_t<std::int16_t, py::array::c_style>& labels,
                           Index n_problems, const std::optional<Doubles>& sample_weight, double lam,
                           const std::string& loss, bool fit_intercept, int n_threads, bool is_part,
                           const std::optional<Doubles>& offsets, const std::optional<Doubles>& variances, double norm,
                           const std::optional<Vector>& centre) {
  require_ndim(labels, "labels", 1);
  check::same_size("labels", labels.shape(0), "X", data.view.n_samples(), "rows");
  std::vector<py::object> owners = data.owners;
  owners.push_back(labels);
  const auto one_for_each_row = [&](const std::optional<Doubles>& array, const char* name) -> const double* {
    if (!array) return nullptr;
    require_ndim(*array, name, 1);
    check::same_size(name, array->shape(0), "X", data.view.n_samples(), "rows");
    owners.push_back(*array);
    return array->data();
  };
  const double* weights = one_for_each_row(sample_weight, "sample_weight");
  Targets targets{labels.data(), n_problems};
  targets.offsets = one_for_each_row(offsets, "offsets");
  targets.variances = one_for_each_row(variances, "variances");
  std::shared_ptr<const Means> means = data.view.shared_means();
  Vector rest;
  if (centre) {
    check::same_size("centre", centre->size(), "X", means->cols(), "columns");
    means = means->seen_from(*centre);
    rest = *centre;
    if (means->origin().size() > 0) rest -= means->origin();
    if (rest.isZero(0.0)) rest.resize(0);
  }
  const Gaussians view(std::move(means), in_norm(data.view.shared_covariances(), norm));
  return {LocalObjective(view, targets, weights, lam, make_loss(loss), fit_intercept, interruptible(n_threads),
                         is_part ? Classes::some : Classes::all),
          std::move(owners), std::move(rest)};
}

}  // namespace

void bind_objective(py::module_& module) {
  py::class_<PyObjective> local(module, "Objective",
                                "lam/2 |w|^2 + sum_i c_i loss(m_i, s_i) for one or several problems.");
  bind_part(local);
  local
      .def(py::init(&make_objective), py::arg("data"), py::arg("labels"), py::arg("n_problems"),
           py::arg("sample_weight"), py::arg("lam"), py::arg("loss") = "expected_hinge",
           py::arg("fit_intercept") = true, py::arg("n_threads") = 0, py::kw_only(), py::arg("is_part") = false,
           py::arg("offsets") = py::none(), py::arg("variances") = py::none(), py::arg("norm") = 2.0,
           py::arg("centre") = py::none())
      .def(
          "hessian_vector",
          [](const PyObjective& self, const Matrix& W, const Vector& b, const Matrix& V, const Vector& v0) {
            Evaluation out(self.objective.n_problems(), self.objective.n_features());
            {
              const py::gil_scoped_release release;
              self.objective.hessian_vector(W, b, V, v0, out);
            }
            return py::make_tuple(out.coef, out.intercept);
          },
          py::arg("W"), py::arg("b"), py::arg("V"), py::arg("v0"))
      .def(
          "exact_values",
          [](const PyObjective& self, const Matrix& W, const Matrix& b, double margin, double unit) {
            check::same_size("coef", W.rows(), "objective", self.objective.n_problems(), "problems");
            check::same_size("intercept", b.rows(), "objective", self.objective.n_problems(), "problems");
            Doubles out({Index{2}, b.rows(), b.cols()});
            MatrixMap values(out.mutable_data(), b.rows(), b.cols());
            MatrixMap errors(out.mutable_data() + b.size(), b.rows(), b.cols());
            const py::gil_scoped_release release;
            for (Index k = 0; k < W.rows(); ++k) {
              const ExactValues of_one =
                  exact_values(self.objective.only(k), W.row(k).transpose(), b.row(k).transpose(), {margin, unit});
              values.row(k) = of_one.value.transpose();
              errors.row(k) = of_one.error.transpose();
            }
            return out;
          },
          py::arg("W"), py::arg("b"), py::arg("margin") = 0.0, py::arg("unit") = 1.0)
      .def(
          "lower_bound",
          [](const PyObjective& self, const Matrix& W, const Vector& b) {
            const py::gil_scoped_release release;
            return self.objective.lower_bound(W, b);
          },
          py::arg("W"), py::arg("b"));
}

}  // namespace halosvm::bindings
