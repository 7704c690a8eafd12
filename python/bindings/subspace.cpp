#include "bindings.hpp"

#include <cstdint>

namespace halosvm::bindings {
namespace {

template <class T>
py::tuple kept_factors(const PyCovariances& covariances, double p, int n_threads) {
  const auto factors = [&] {
    const py::gil_scoped_release release;
    return truncate(*covariances.view, p, interruptible(n_threads));
  }();
  const auto& offsets = factors.offsets();
  py::array_t<T> values(covariances.view->n_features() * offsets.back());
  factors.write(values.mutable_data());
  return py::make_tuple(values, py::array_t<Index>(static_cast<py::ssize_t>(offsets.size()), offsets.data()));
}

py::array_t<bool> kept_variances(const PyCovariances& covariances, double p, int n_threads) {
  py::array_t<bool> kept({covariances.view->n_samples(), covariances.view->n_features()});
  auto* flags = reinterpret_cast<std::uint8_t*>(kept.mutable_data());
  const py::gil_scoped_release release;
  truncate_diagonal(*covariances.view, p, flags, interruptible(n_threads));
  return kept;
}

}  // namespace

void bind_subspace(py::module_& module) {
  module.def("truncate", &kept_factors<double>, py::arg("covariances"), py::arg("p"), py::arg("n_threads") = 0,
             "Flat factors of the leading parts, and their cumulative ranks.");
  module.def("truncate_float32", &kept_factors<float>, py::arg("covariances"), py::arg("p"), py::arg("n_threads") = 0,
             "The same, stored in float32.");
  module.def("truncate_diagonal", &kept_variances, py::arg("covariances"), py::arg("p"), py::arg("n_threads") = 0,
             "Which variances are kept.");
}

}  // namespace halosvm::bindings
