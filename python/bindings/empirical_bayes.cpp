#include "bindings.hpp"

#include <algorithm>
#include <optional>

namespace halosvm::bindings {
namespace {

PopulationKind population_kind(const std::string& name) {
  if (name == "full") return PopulationKind::full;
  if (name == "diagonal") return PopulationKind::diagonal;
  if (name == "factors") return PopulationKind::factors;
  throw py::value_error("kind must be one of full, diagonal, factors; got '" + name + "'");
}

/// \param matrices of full, k x d x d. \param factors of factors, k x d x h. \param variances of the other two, k x d.
Population population(const std::string& kind, const Vector& weights, const Matrix& means,
                      const std::optional<Doubles>& matrices, const std::optional<Matrix>& variances,
                      const std::optional<Doubles>& factors) {
  Population out;
  out.kind = population_kind(kind);
  out.weights = weights;
  out.means = means;
  if (variances) out.variances = *variances;
  for (const auto* array : {&matrices, &factors}) {
    if (!*array) continue;
    require_ndim(**array, "covariances", 3);
    const Index rows = (**array).shape(0) * (**array).shape(1);
    (array == &matrices ? out.matrices : out.factors) = ConstMatrixMap((**array).data(), rows, (**array).shape(2));
  }
  return out;
}

Doubles stacked(const Matrix& matrix, Index k) {
  Doubles out({k, matrix.rows() / k, matrix.cols()});
  MatrixMap(out.mutable_data(), matrix.rows(), matrix.cols()) = matrix;
  return out;
}

/// Lower and upper limits as large as X, or none.
using GivenLimits = std::optional<std::pair<Doubles, Doubles>>;

Limits limits_of(const GivenLimits& given, const Gaussians& X) {
  if (!given) return {};
  for (const Doubles* each : {&given->first, &given->second}) {
    require_ndim(*each, "limits", 2);
    check::same_size("limits", each->shape(0), "X", X.n_samples(), "rows");
    check::same_size("limits", each->shape(1), "X", X.n_features(), "columns");
  }
  return {given->first.data(), given->second.data()};
}

/// The measurements of each class; rows of the others have the weight 0 there.
std::vector<Measurements> measurements_of(const Gaussians& X, const double* weights, const std::vector<Index>& labels,
                                          Index n_classes, std::vector<Vector>& memory, const Execution& execution,
                                          const Limits& limits) {
  std::vector<Measurements> out;
  if (n_classes == 1) {
    out.emplace_back(X, weights, execution, limits);
    return out;
  }
  check::same_size("labels", static_cast<Index>(labels.size()), "X", X.n_samples(), "rows");
  memory.assign(static_cast<std::size_t>(n_classes), Vector::Zero(X.n_samples()));
  for (Index i = 0; i < X.n_samples(); ++i) {
    const Index label = labels[static_cast<std::size_t>(i)];
    check::require(label >= 0 && label < n_classes, "labels", "row " + std::to_string(i) + " is no class");
    memory[static_cast<std::size_t>(label)](i) = weights != nullptr ? weights[i] : 1.0;
  }
  for (const Vector& each : memory) out.emplace_back(X, each.data(), execution, limits);
  return out;
}

/// The batch of each row, and the class or none.
PopulationFit fit_batches(const Gaussians& X, const double* weights, const std::vector<Index>& labels,
                          const std::vector<Index>& batches, const Population& start,
                          const PopulationSettings& settings, const Execution& execution) {
  const bool single = start.n_components() == (labels.empty() ? 1 : start.n_classes());
  const BatchedMeasurements data(X, weights, batches, labels, single, execution);
  return fit_population(data, start, settings, execution);
}

py::tuple as_arrays(const BatchOffsets& offsets) {
  return py::make_tuple(offsets.means, stacked(offsets.covariances, offsets.means.rows()));
}

BatchOffsets from_arrays(const Matrix& means, const Doubles& covariances) {
  require_ndim(covariances, "covariances", 3);
  return {means, ConstMatrixMap(covariances.data(), covariances.shape(0) * covariances.shape(1), covariances.shape(2))};
}

OffsetForm offset_form(const std::string& name) {
  if (name == "full") return OffsetForm::full;
  if (name == "diagonal") return OffsetForm::diagonal;
  if (name == "isotropic") return OffsetForm::isotropic;
  throw py::value_error("form must be one of full, diagonal, isotropic; got '" + name + "'");
}

py::dict fit(const PyGaussians& X, const Population& start, const std::vector<Index>& labels,
             const std::vector<Index>& batches, const std::optional<Vector>& offset_prior, double offset_prior_weight,
             const std::optional<Doubles>& sample_weight, int max_iterations, double tolerance, const Vector& prior,
             double prior_weight, const std::optional<Matrix>& prior_scatter, const Vector& scale, bool accelerate,
             int n_threads, const std::optional<py::function>& report, const GivenLimits& limits) {
  PopulationSettings settings;
  settings.max_iterations = max_iterations;
  settings.tolerance = tolerance;
  settings.prior = prior;
  settings.prior_weight = prior_weight;
  if (prior_scatter) settings.prior_scatter = *prior_scatter;
  if (offset_prior) settings.offset_prior = *offset_prior;
  settings.offset_prior_weight = offset_prior_weight;
  settings.scale = scale;
  settings.accelerate = accelerate;
  if (report) {
    settings.report = [&report](int iteration, double value, double gain) {
      const py::gil_scoped_acquire gil;
      (*report)(iteration, value, gain);
    };
  }
  if (sample_weight) check::same_size("sample_weight", sample_weight->size(), "X", X.view.n_samples(), "rows");
  const double* weights = sample_weight ? sample_weight->data() : nullptr;
  const Limits views_of_limits = limits_of(limits, X.view);
  const PopulationFit result = [&] {
    const py::gil_scoped_release release;
    const Execution execution = interruptible(n_threads);
    if (!batches.empty()) return fit_batches(X.view, weights, labels, batches, start, settings, execution);
    std::vector<Vector> memory;
    const auto classes =
        measurements_of(X.view, weights, labels, start.n_classes(), memory, execution, views_of_limits);
    std::vector<const Measurements*> views;
    views.reserve(classes.size());
    for (const Measurements& each : classes) views.push_back(&each);
    return fit_population(views, start, settings, execution);
  }();
  py::dict out;
  out["population"] = result.population;
  out["history"] = py::array_t<double>(static_cast<py::ssize_t>(result.history.size()), result.history.data());
  out["iterations"] = result.iterations;
  out["predicted_gain"] = result.predicted_gain;
  out["converged"] = result.status != PopulationStatus::max_iterations;
  out["message"] = sentence(result.status);
  if (!batches.empty()) out["offsets"] = as_arrays(result.offsets);
  return out;
}

py::tuple known_offsets(const Population& of, const PyGaussians& X, const std::vector<Index>& batches,
                        const std::optional<Matrix>& means, const std::optional<Doubles>& covariances, int n_threads) {
  const BatchOffsets known = means ? from_arrays(*means, covariances.value()) : BatchOffsets();
  const BatchOffsets found = [&] {
    const py::gil_scoped_release release;
    const Execution execution = interruptible(n_threads);
    const BatchedMeasurements data(X.view, nullptr, batches, {}, of.n_components() == 1, execution);
    return batch_offsets(of, data, means ? &known : nullptr, execution);
  }();
  return as_arrays(found);
}

py::dict without_offsets(const Population& of, const PyGaussians& X, const std::vector<Index>& batches,
                         const std::vector<Index>& labels, const Matrix& means, const Doubles& covariances,
                         const Vector& parts, int n_threads) {
  const BatchOffsets offsets = from_arrays(means, covariances);
  const Index n = X.view.n_samples();
  const Index d = of.n_features();
  Doubles values({n, d});
  Doubles errors({n, d, d});
  const LoneRows target{values.mutable_data(), errors.mutable_data()};
  {
    const py::gil_scoped_release release;
    remove_offsets(of, X.view, batches, labels, offsets, parts, target, interruptible(n_threads));
  }
  py::dict out;
  out["means"] = values;
  out["matrices"] = errors;
  return out;
}

py::dict posteriors(const Population& of, const PyGaussians& X, bool joined, bool covariances, int n_threads,
                    const GivenLimits& limits) {
  using Kind = Posteriors::Kind;
  const Execution execution = interruptible(n_threads);
  const Limits views_of_limits = limits_of(limits, X.view);
  const auto result = [&] {
    const py::gil_scoped_release release;
    return std::make_unique<Posteriors>(of, X.view, joined, execution, views_of_limits);
  }();
  const Index n = X.view.n_samples();
  const Index d = of.n_features();
  const Index total = n * result->n_components();
  const Kind kind = result->kind();
  PosteriorTarget target;
  py::dict out;
  const auto array = [&out](const char* name, std::vector<Index> shape) {
    Doubles values(std::move(shape));
    out[name] = values;
    return values.mutable_data();
  };
  if (!joined) target.responsibilities = array("responsibilities", {n, of.n_components()});
  target.means = array("means", {total, d});
  out["kind"] = kind == Kind::zero       ? "zero"
                : kind == Kind::diagonal ? "diagonal"
                : kind == Kind::low_rank ? "low_rank"
                                         : "full";
  if (covariances) {
    if (kind == Kind::diagonal || kind == Kind::low_rank) target.variances = array("variances", {total, d});
    if (kind == Kind::low_rank) target.factors = array("factors", {total, d, result->rank()});
    if (kind == Kind::full) target.matrices = array("matrices", {total, d, d});
  }
  const py::gil_scoped_release release;
  result->write(target);
  return out;
}

}  // namespace

void bind_empirical_bayes(py::module_& module) {
  py::class_<Population>(module, "Population", "Gaussian components of the true values behind measurements.")
      .def(py::init(&population), py::arg("kind"), py::arg("weights"), py::arg("means"),
           py::arg("matrices") = py::none(), py::arg("variances") = py::none(), py::arg("factors") = py::none())
      .def_property_readonly("classes", [](const Population& self) { return self.classes; })
      .def(
          "labelled",
          [](Population self, const std::vector<Index>& classes, bool tied) {
            self.classes = classes;
            self.tied = tied;
            return self;
          },
          py::arg("classes"), py::arg("tied"), "The same components, each of a class.")
      .def(
          "holding",
          [](Population self, const std::vector<bool>& weights, const std::vector<bool>& means,
             const std::vector<bool>& covariances) {
            self.held = {weights, means, covariances};
            return self;
          },
          py::arg("weights"), py::arg("means"), py::arg("covariances"),
          "The same components, of which a fit leaves these parts as they are: a flag each, or none.")
      .def(
          "with_offsets",
          [](Population self, const Matrix& covariance, const std::string& form) {
            self.offsets = covariance;
            self.offset_form = offset_form(form);
            return self;
          },
          py::arg("covariance"), py::arg("form"), "The same components, with offsets of batches.")
      .def_property_readonly("offsets", [](const Population& self) { return self.offsets; })
      .def(
          "of_class",
          [](const Population& self, Index c) {
            const auto range = std::equal_range(self.classes.begin(), self.classes.end(), c);
            check::require(range.first != range.second, "c", "is no class");
            Population out = self.components(range.first - self.classes.begin(), range.second - range.first);
            out.weights /= out.weights.sum();
            return out;
          },
          py::arg("c"), "The population of one class.")
      .def_property_readonly("weights", [](const Population& self) { return self.weights; })
      .def_property_readonly("means", [](const Population& self) { return self.means; })
      .def_property_readonly("matrices",
                             [](const Population& self) { return stacked(self.matrices, self.n_components()); })
      .def_property_readonly("variances", [](const Population& self) { return self.variances; })
      .def_property_readonly("factors",
                             [](const Population& self) { return stacked(self.factors, self.n_components()); });
  module.def("fit_population", &fit, py::arg("X"), py::arg("start"), py::kw_only(),
             py::arg("labels") = std::vector<Index>(), py::arg("batches") = std::vector<Index>(),
             py::arg("offset_prior") = py::none(), py::arg("offset_prior_weight") = 0.0,
             py::arg("sample_weight") = py::none(), py::arg("max_iterations"), py::arg("tolerance"), py::arg("prior"),
             py::arg("prior_weight") = 0.0, py::arg("prior_scatter") = py::none(), py::arg("scale"),
             py::arg("accelerate") = true, py::arg("n_threads") = 0, py::arg("report") = py::none(),
             py::arg("limits") = py::none(), "The most likely population behind measurements; NaN is a missing value.");
  module.def("batch_offsets", &known_offsets, py::arg("population"), py::arg("X"), py::arg("batches"),
             py::arg("means") = py::none(), py::arg("covariances") = py::none(), py::arg("n_threads") = 0,
             "Means and covariances of the offsets of batches, from their rows and what was known before.");
  module.def("remove_offsets", &without_offsets, py::arg("population"), py::arg("X"), py::arg("batches"),
             py::arg("labels"), py::arg("means"), py::arg("covariances"), py::arg("parts"), py::arg("n_threads") = 0,
             "Measurements of rows by themselves that tell what all rows of their batch tell.");
  module.def(
      "measurement_log_density",
      [](const Population& of, const PyGaussians& X, int n_threads, const GivenLimits& limits) {
        Vector out(X.view.n_samples());
        const Limits views_of_limits = limits_of(limits, X.view);
        const py::gil_scoped_release release;
        log_density(of, X.view, out, interruptible(n_threads), views_of_limits);
        return out;
      },
      py::arg("population"), py::arg("X"), py::arg("n_threads") = 0, py::arg("limits") = py::none(),
      "log p(x_i) of each measurement.");
  module.def("true_value_posteriors", &posteriors, py::arg("population"), py::arg("X"), py::arg("joined"),
             py::arg("covariances") = true, py::arg("n_threads") = 0, py::arg("limits") = py::none(),
             "Arrays of the posteriors of the true values, and their kind.");
}

}  // namespace halosvm::bindings
