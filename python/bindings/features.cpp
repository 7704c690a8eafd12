#include "bindings.hpp"

#include <optional>

namespace halosvm::bindings {
namespace {

using Output = std::optional<py::array>;

/// The caller's array itself.
NumberTarget numbers_of(Output& out, const std::string& argument, Index size) {
  if (!out) return {};
  if (static_cast<Index>(out->size()) != size) {
    throw py::value_error(argument + " has " + std::to_string(out->size()) + " numbers, expected " +
                          std::to_string(size));
  }
  if ((out->flags() & py::array::c_style) != 0) {
    if (py::isinstance<py::array_t<double>>(*out)) return static_cast<double*>(out->mutable_data());
    if (py::isinstance<py::array_t<float>>(*out)) return static_cast<float*>(out->mutable_data());
  }
  throw py::type_error(argument + " must be a C-contiguous array of float32 or float64");
}

FeatureTarget target_of(const Gaussians& X, Index D, Output& means, Output& variances, Output& factors,
                        Output& matrices) {
  const Index n = X.n_samples();
  return {numbers_of(means, "means", n * D), numbers_of(variances, "variances", n * D),
          numbers_of(factors, "factors", n * D * latent_rank(X)), numbers_of(matrices, "matrices", n * D * D)};
}

FourierMap fourier_map(const Matrix& frequencies, const std::optional<Vector>& phases) {
  return {frequencies, phases.value_or(Vector())};
}

}  // namespace

void bind_features(py::module_& module) {
  module.def(
      "latent_rank", [](const PyGaussians& X) { return latent_rank(X.view); }, py::arg("X"),
      "Columns of the roots of the covariances.");
  module.def(
      "largest_steps",
      [](const PyGaussians& X, const Vector& scale, double radius, double norm, int n_threads) {
        Vector out(X.view.n_samples());
        const py::gil_scoped_release release;
        largest_steps(X.view, scale, {radius, norm}, out, interruptible(n_threads));
        return out;
      },
      py::arg("X"), py::arg("scale"), py::arg("radius"), py::arg("norm"), py::arg("n_threads") = 0,
      "Bounds of |scale o dx| over balls of inputs.");
  module.def(
      "fourier_features",
      [](const Matrix& frequencies, const std::optional<Vector>& phases, const PyGaussians& X, Output means,
         Output variances, Output factors, Output matrices, int n_threads) {
        const FourierMap map = fourier_map(frequencies, phases);
        const FeatureTarget out = target_of(X.view, map.n_components(), means, variances, factors, matrices);
        const py::gil_scoped_release release;
        fourier_features(map, X.view, out, interruptible(n_threads));
      },
      py::arg("frequencies"), py::arg("phases").none(true), py::arg("X"), py::arg("means"),
      py::arg("variances") = py::none(), py::arg("factors") = py::none(), py::arg("matrices") = py::none(),
      py::arg("n_threads") = 0, "Writes the moments of random Fourier features.");
  module.def(
      "fourier_bound",
      [](const Matrix& frequencies, const std::optional<Vector>& phases, const PyGaussians& X, double radius,
         double norm, bool printed, int n_threads) {
        const FourierMap map = fourier_map(frequencies, phases);
        Vector out(X.view.n_samples());
        const py::gil_scoped_release release;
        fourier_bound(map, X.view, {radius, norm}, printed, out, interruptible(n_threads));
        return out;
      },
      py::arg("frequencies"), py::arg("phases").none(true), py::arg("X"), py::arg("radius"), py::arg("norm"),
      py::arg("printed") = false, py::arg("n_threads") = 0, "How far the features of bounded inputs can move.");
  module.def(
      "nystroem_features",
      [](const PyGaussians& Z, const Vector& gamma, const Matrix& projection, const PyGaussians& X, Output means,
         Output variances, Output factors, Output matrices, int n_threads) {
        const NystroemMap map{gamma, Z.view, projection};
        const FeatureTarget out = target_of(X.view, map.n_components(), means, variances, factors, matrices);
        const py::gil_scoped_release release;
        nystroem_features(map, X.view, out, interruptible(n_threads));
      },
      py::arg("Z"), py::arg("gamma"), py::arg("projection"), py::arg("X"), py::arg("means"),
      py::arg("variances") = py::none(), py::arg("factors") = py::none(), py::arg("matrices") = py::none(),
      py::arg("n_threads") = 0, "Writes the moments of Nystroem features.");
}

}  // namespace halosvm::bindings
