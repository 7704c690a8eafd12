/// \file
/// One function for each binding file, and the conversions they share.
#pragma once

#include "halosvm/halosvm.hpp"

#include <pybind11/eigen.h>
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

namespace halosvm::bindings {

namespace py = pybind11;

void bind_calibration(py::module_& module);
void bind_config(py::module_& module);
void bind_empirical_bayes(py::module_& module);
void bind_features(py::module_& module);
void bind_gaussians(py::module_& module);
void bind_kernel(py::module_& module);
void bind_left_behind(py::module_& module);
void bind_linear_model(py::module_& module);
void bind_loss(py::module_& module);
void bind_normal(py::module_& module);
void bind_objective(py::module_& module);
void bind_solver(py::module_& module);
void bind_stream(py::module_& module);
void bind_subspace(py::module_& module);
void bind_summed_objective(py::module_& module);

/// A C-contiguous, aligned float64 array; pybind11 converts anything else.
using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;

/// The caller's array itself, seen as an array of rows x (all other sizes): no copy, read-only arrays included.
/// \throws py::type_error for an array that is not C-contiguous, aligned, native float32 or float64.
inline ArrayView view_of(const py::array& array, const std::string& argument, Index rows, bool squared = false) {
  const bool in_place =
      (array.flags() & py::array::c_style) != 0 && (array.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_) != 0;
  const Index cols = rows > 0 ? static_cast<Index>(array.size()) / rows : 0;
  if (in_place && py::isinstance<py::array_t<double>>(array)) {
    return {static_cast<const double*>(array.data()), rows, cols, squared};
  }
  if (in_place && py::isinstance<py::array_t<float>>(array)) {
    return {static_cast<const float*>(array.data()), rows, cols, squared};
  }
  throw py::type_error(argument + " must be a C-contiguous array of float32 or float64");
}

/// A scipy CSR array or matrix, seen as it is: no copy. Its indices are canonical, and of one type.
/// \throws py::type_error for values other than float32 or float64, and indices other than int32 or int64.
SparseView sparse_view_of(const py::object& array, const std::string& argument, bool squared = false);

/// A C-contiguous array, or a CSR one, as means.
std::shared_ptr<const Means> means_of(const py::object& means, const std::string& argument);

/// Throws unless the array has that many dimensions.
inline void require_ndim(const py::array& array, const std::string& argument, py::ssize_t ndim) {
  if (array.ndim() != ndim) {
    throw py::value_error(argument + " has " + std::to_string(array.ndim()) + " dimensions, expected " +
                          std::to_string(ndim));
  }
}

inline LinearModel model_of(const Matrix& coef, const Vector& intercept) {
  LinearModel model;
  model.coef = coef;
  model.intercept = intercept;
  return model;
}

/// Runs on \p n_threads threads (0: all) and lets Python's signal handlers raise, as Ctrl-C does.
inline Execution interruptible(int n_threads) {
  return {n_threads, [] {
            const py::gil_scoped_acquire gil;
            if (PyErr_CheckSignals() != 0) throw py::error_already_set();
            return true;
          }};
}

/// A covariance view together with the arrays that it looks into.
struct PyCovariances {
  /// Python checks the numbers of arrays where it makes them halosvm.Gaussians: another look would cost a pass.
  PyCovariances(std::shared_ptr<const Covariances> covariances, std::vector<py::object> arrays)
      : view(std::move(covariances)), owners(std::move(arrays)) {
    view->assume_checked();
  }
  std::shared_ptr<const Covariances> view;
  std::vector<py::object> owners;
};

/// Gaussians likewise.
struct PyGaussians {
  Gaussians view;
  std::vector<py::object> owners;
};

/// Mixtures likewise; Gaussians are converted to them.
struct PyMixtures {
  Mixtures view;
  std::vector<py::object> owners;
};

}  // namespace halosvm::bindings
