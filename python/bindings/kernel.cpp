#include "bindings.hpp"

#include <optional>

namespace halosvm::bindings {
namespace {

KernelKind kind_of(const std::string& name) {
  if (name == "rbf") return KernelKind::rbf;
  if (name == "laplacian") return KernelKind::laplacian;
  if (name == "poly") return KernelKind::polynomial;
  if (name == "linear") return KernelKind::linear;
  throw py::value_error("kind must be one of rbf, laplacian, poly, linear; got '" + name + "'");
}

/// The caller's array itself: its rows must be contiguous, their distance is free.
GramTarget target_of(py::array& out, Index rows, Index columns) {
  require_ndim(out, "out", 2);
  if (out.shape(0) != rows || out.shape(1) != columns) {
    throw py::value_error("out has shape (" + std::to_string(out.shape(0)) + ", " + std::to_string(out.shape(1)) +
                          "), expected (" + std::to_string(rows) + ", " + std::to_string(columns) + ")");
  }
  GramTarget target;
  const auto item = static_cast<Index>(out.itemsize());
  const bool in_rows = columns <= 1 || out.strides(1) == item;
  if (in_rows && out.strides(0) % item == 0) {
    target.stride = out.strides(0) / item;
    if (py::isinstance<py::array_t<double>>(out)) target.float64 = static_cast<double*>(out.mutable_data());
    if (py::isinstance<py::array_t<float>>(out)) target.float32 = static_cast<float*>(out.mutable_data());
  }
  if (rows > 0 && columns > 0 && target.float64 == nullptr && target.float32 == nullptr) {
    throw py::type_error("out must be an array of float32 or float64 whose rows are contiguous");
  }
  return target;
}

void write_gram(const PyMixtures& X, const PyMixtures* Y, py::array out, const std::string& kind, const Vector& gamma,
                int degree, double coef0, bool normalize, int n_threads, const std::optional<py::function>& report) {
  const ExpectedKernel kernel{kind_of(kind), gamma, degree, coef0, normalize};
  const Mixtures& other = Y != nullptr ? Y->view : X.view;
  const GramTarget target = target_of(out, X.view.n_samples(), other.n_samples());
  KernelProgress progress;
  if (report) {
    progress = [&report](double fraction) {
      const py::gil_scoped_acquire gil;
      (*report)(fraction);
    };
  }
  const py::gil_scoped_release release;
  gram(kernel, X.view, other, target, interruptible(n_threads), progress);
}

}  // namespace

void bind_kernel(py::module_& module) {
  module.def("gram", &write_gram, py::arg("X"), py::arg("Y").none(true), py::arg("out"), py::arg("kind"),
             py::arg("gamma"), py::arg("degree") = 3, py::arg("coef0") = 1.0, py::arg("normalize") = false,
             py::arg("n_threads") = 0, py::arg("report") = py::none(),
             "Writes the Gram matrix of an expected kernel, of X with itself when Y is None.");
  module.def(
      "gram_diagonal",
      [](const PyMixtures& X, const std::string& kind, const Vector& gamma, int degree, double coef0, int n_threads) {
        const ExpectedKernel kernel{kind_of(kind), gamma, degree, coef0, false};
        const py::gil_scoped_release release;
        return gram_diagonal(kernel, X.view, interruptible(n_threads));
      },
      py::arg("X"), py::arg("kind"), py::arg("gamma"), py::arg("degree") = 3, py::arg("coef0") = 1.0,
      py::arg("n_threads") = 0, "The diagonal of that matrix.");
  module.def(
      "expansion_variance",
      [](const PyMixtures& X, const PyMixtures& Z, const Matrix& coefficients, const Vector& gamma, bool normalize,
         int n_threads) {
        const ExpectedKernel kernel{KernelKind::rbf, gamma, 3, 1.0, normalize};
        Matrix out(X.view.n_samples(), coefficients.rows());
        const py::gil_scoped_release release;
        expansion_variance(kernel, X.view, Z.view, coefficients, out, interruptible(n_threads));
        return out;
      },
      py::arg("X"), py::arg("Z"), py::arg("coefficients"), py::arg("gamma"), py::arg("normalize") = false,
      py::arg("n_threads") = 0, "Var sum_j c_pj E k(x, Z_j) over x ~ X_i for the rbf kernel, n_samples x n_problems.");
}

}  // namespace halosvm::bindings
