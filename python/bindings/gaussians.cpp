#include "bindings.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "halosvm/core/check.hpp"

namespace halosvm::bindings {
namespace {

/// The numbers of an array as one of two types.
template <class First, class Second>
std::variant<const First*, const Second*> one_of(const py::object& array, const std::string& argument) {
  if (py::isinstance<py::array_t<First, py::array::c_style>>(array)) {
    return static_cast<const First*>(py::cast<py::array>(array).data());
  }
  if (py::isinstance<py::array_t<Second, py::array::c_style>>(array)) {
    return static_cast<const Second*>(py::cast<py::array>(array).data());
  }
  throw py::type_error(argument + " is sparse with numbers or indices of another type than the core reads");
}

PyCovariances zero(Index n_samples, Index n_features) {
  return {std::make_shared<ZeroCovariances>(n_samples, n_features), {}};
}

PyCovariances isotropic(const py::array& values, Index n_features, bool squared) {
  require_ndim(values, "variances", 1);
  const ArrayView view = view_of(values, "variances", values.shape(0), squared);
  return {std::make_shared<IsotropicCovariances>(view, n_features), {values}};
}

PyCovariances diagonal(const py::array& values, bool squared) {
  require_ndim(values, "variances", 2);
  return {std::make_shared<DiagonalCovariances>(view_of(values, "variances", values.shape(0), squared)), {values}};
}

PyCovariances low_rank(const py::array& factors, Index n_features, const py::object& offsets,
                       const py::object& diagonal_values) {
  ArrayView variances;
  std::vector<py::object> owners{factors};
  if (!diagonal_values.is_none()) {
    const auto array = py::cast<py::array>(diagonal_values);
    require_ndim(array, "diagonal", 2);
    variances = view_of(array, "diagonal", array.shape(0));
    owners.push_back(array);
  }
  if (offsets.is_none()) {
    require_ndim(factors, "factors", 3);
    const Index n_samples = factors.shape(0);
    const ArrayView view = view_of(factors, "factors", n_samples * factors.shape(1));
    // An array without rank columns has no size to derive the columns from; n_samples rows of none say the same.
    return {std::make_shared<LowRankCovariances>(view, n_samples, n_features, variances), std::move(owners)};
  }
  require_ndim(factors, "factors", 1);
  const auto cumulative = py::cast<py::array_t<Index, py::array::c_style>>(offsets);
  require_ndim(cumulative, "offsets", 1);
  const Index n_samples = cumulative.size() - 1;
  if (n_samples < 0) throw py::value_error("offsets is empty; it has one more entry than there are examples");
  owners.push_back(cumulative);
  const ArrayView view = view_of(factors, "factors", 1);
  return {std::make_shared<LowRankCovariances>(view, cumulative.data(), n_samples, n_features, variances),
          std::move(owners)};
}

PyCovariances sparse_diagonal(const py::object& values, bool squared) {
  return {std::make_shared<SparseDiagonalCovariances>(sparse_view_of(values, "variances", squared)), {values}};
}

PyCovariances columns(const PyCovariances& inner, const std::vector<Index>& columns, Index n_features) {
  return {std::make_shared<ColumnsCovariances>(inner.view, columns, n_features), inner.owners};
}

PyCovariances full(const py::array& values) {
  require_ndim(values, "covariances", 3);
  const Index n_samples = values.shape(0);
  const ArrayView view = view_of(values, "covariances", n_samples * values.shape(1));
  return {std::make_shared<FullCovariances>(view, n_samples), {values}};
}

PyGaussians gaussians(const py::object& means, const PyCovariances& covariances) {
  std::vector<py::object> owners = covariances.owners;
  owners.push_back(means);
  return {Gaussians(means_of(means, "means"), covariances.view), std::move(owners)};
}

PyMixtures mixtures(const PyGaussians& components, const py::array_t<Index, py::array::c_style>& offsets,
                    const Doubles& weights) {
  require_ndim(offsets, "offsets", 1);
  require_ndim(weights, "weights", 1);
  check::same_size("weights", weights.size(), "components", components.view.n_samples(), "rows");
  const auto n_samples = static_cast<Index>(offsets.size()) - 1;
  if (n_samples < 0) throw py::value_error("offsets is empty; it has one more entry than there are mixtures");
  std::vector<py::object> owners = components.owners;
  owners.insert(owners.end(), {offsets, weights});
  return {Mixtures(components.view, offsets.data(), n_samples, weights.data()), std::move(owners)};
}

/// sum_i a_i S_i w.
Matrix weighted_product(const PyCovariances& self, const Vector& a, const Matrix& w) {
  constexpr Index block = 256;
  const Covariances& covariances = *self.view;
  check::same_size("a", a.size(), "covariances", covariances.n_samples(), "rows");
  check::same_size("w", w.cols(), "covariances", covariances.n_features(), "features");
  const py::gil_scoped_release release;
  Matrix sum = Matrix::Zero(1, w.cols());
  Vector scratch(covariances.scratch_size({block, 1}));
  for (Index begin = 0; begin < a.size(); begin += block) {
    const Index count = std::min(block, a.size() - begin);
    covariances.add_weighted_products({begin, count}, a.segment(begin, count).transpose(), w, sum, scratch.data());
  }
  return sum;
}

}  // namespace

SparseView sparse_view_of(const py::object& array, const std::string& argument, bool squared) {
  const auto shape = py::cast<std::pair<Index, Index>>(array.attr("shape"));
  const auto offsets = py::cast<py::array>(array.attr("indptr"));
  check::same_size(argument, offsets.size(), "shape", shape.first + 1, "offsets");
  return {one_of<double, float>(array.attr("data"), argument),
          one_of<std::int32_t, std::int64_t>(array.attr("indices"), argument),
          one_of<std::int32_t, std::int64_t>(offsets, argument),
          shape.first,
          shape.second,
          squared};
}

std::shared_ptr<const Means> means_of(const py::object& means, const std::string& argument) {
  std::shared_ptr<const Means> view;
  if (py::hasattr(means, "indptr")) {
    view = std::make_shared<SparseMeans>(sparse_view_of(means, argument));
  } else {
    const auto array = py::cast<py::array>(means);
    require_ndim(array, argument, 2);
    view = std::make_shared<DenseMeans>(view_of(array, argument, array.shape(0)));
  }
  view->assume_checked();  // as PyCovariances
  return view;
}

void bind_gaussians(py::module_& module) {
  py::class_<PyCovariances>(module, "Covariances", "A view of NumPy arrays as covariances; see halosvm.Covariances.")
      .def_static("zero", &zero, py::arg("n_samples"), py::arg("n_features"))
      .def_static("isotropic", &isotropic, py::arg("values"), py::arg("n_features"), py::arg("squared") = false)
      .def_static("diagonal", &diagonal, py::arg("values"), py::arg("squared") = false)
      .def_static("low_rank", &low_rank, py::arg("factors"), py::arg("n_features"), py::arg("offsets") = py::none(),
                  py::arg("diagonal") = py::none())
      .def_static("full", &full, py::arg("values"))
      .def_static("sparse_diagonal", &sparse_diagonal, py::arg("values"), py::arg("squared") = false)
      .def_static("columns", &columns, py::arg("inner"), py::arg("columns"), py::arg("n_features"))
      .def_property_readonly("kind", [](const PyCovariances& self) { return self.view->kind(); })
      .def_property_readonly("n_samples", [](const PyCovariances& self) { return self.view->n_samples(); })
      .def_property_readonly("n_features", [](const PyCovariances& self) { return self.view->n_features(); })
      .def("weighted_product", &weighted_product, py::arg("a"), py::arg("w"))
      .def(
          "check",
          [](const PyCovariances& self, const std::string& argument) {
            const py::gil_scoped_release release;
            self.view->check(argument, interruptible(0));
          },
          py::arg("argument"));

  py::class_<PyGaussians>(module, "Gaussians", "A view of means and covariances; see halosvm.Gaussians.")
      .def(py::init(&gaussians), py::arg("means"), py::arg("covariances"))
      .def_property_readonly("n_samples", [](const PyGaussians& self) { return self.view.n_samples(); })
      .def_property_readonly("n_features", [](const PyGaussians& self) { return self.view.n_features(); })
      .def(
          "check",
          [](const PyGaussians& self, const std::string& argument) {
            const py::gil_scoped_release release;
            self.view.check(argument, interruptible(0));
          },
          py::arg("argument"));

  py::class_<PyMixtures>(module, "Mixtures", "A view of components and weights; see halosvm.GaussianMixtures.")
      .def(py::init([](const PyGaussians& X) { return PyMixtures{Mixtures(X.view), X.owners}; }), py::arg("components"))
      .def(py::init(&mixtures), py::arg("components"), py::arg("offsets"), py::arg("weights"))
      .def_property_readonly("n_samples", [](const PyMixtures& self) { return self.view.n_samples(); })
      .def_property_readonly("n_features", [](const PyMixtures& self) { return self.view.n_features(); });
  py::implicitly_convertible<PyGaussians, PyMixtures>();
}

}  // namespace halosvm::bindings
