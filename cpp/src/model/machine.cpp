// Machines of model files: text and examples come in, scores, classes and probabilities go out.

#include "halosvm/model/machine.hpp"

#include "halosvm/core/check.hpp"
#include "gaussians/covariances/make.hpp"
#include "model/record.hpp"
#include "model/stored_kernel.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace halosvm {
namespace {

ArrayView view_of(const Matrix& rows, bool squared = false) { return {rows.data(), rows.rows(), rows.cols(), squared}; }

Gaussians gaussians_of(const Matrix& means, const Matrix* stds) {
  if (stds == nullptr) return {view_of(means), no_covariances(means.rows(), means.cols())};
  check::same_size("stds", stds->rows(), "means", means.rows(), "rows");
  check::same_size("stds", stds->cols(), "means", means.cols(), "columns");
  auto covariances = diagonal_covariances(view_of(*stds, true));
  covariances->check_once("stds", {});
  return {view_of(means), std::move(covariances)};
}

/// A value for each class: the pairs that it wins, and a little by how much, which never changes who wins more.
Matrix votes_of(const Matrix& pairs, Index n_classes) {
  Matrix votes = Matrix::Zero(pairs.rows(), n_classes);
  Matrix sums = votes;
  Index pair = 0;
  for (Index a = 0; a < n_classes; ++a) {
    for (Index b = a + 1; b < n_classes; ++b, ++pair) {
      sums.col(a) += pairs.col(pair);
      sums.col(b) -= pairs.col(pair);
      for (Index i = 0; i < pairs.rows(); ++i) votes(i, pairs(i, pair) < 0.0 ? b : a) += 1.0;
    }
  }
  return votes.array() + sums.array() / (3.0 * (sums.array().abs() + 1.0));
}

/// The scores of all problems of the model.
Matrix own_scores(const Machine& machine, const Examples& X) {
  const Mixtures& examples = X.view();
  if (const auto* linear = std::get_if<LinearModel>(&machine.model)) {
    check::require(examples.plain(), "X", "has mixtures, which linear machines do not take");
    Matrix out(examples.n_samples(), linear->coef.rows());
    decision_function(*linear, examples.components().means(), out, machine.execution);
    return out;
  }
  const auto& of_kernel = std::get<KernelModel>(machine.model);
  Matrix out(examples.n_samples(), of_kernel.coefficients.rows());
  if (machine.of_means) {
    check::require(examples.plain(), "X", "has mixtures, which " + machine.estimator + " does not take");
    const auto none = no_covariances(examples.n_samples(), examples.n_features());
    decision_function(of_kernel, Gaussians(examples.components().shared_means(), none), out, machine.execution);
  } else {
    decision_function(of_kernel, examples, out, machine.execution);
  }
  return out;
}

/// One score for two classes or for values, else one for each class.
Matrix scores_of_classes(const Machine& machine, const Examples& X) {
  Matrix scores = own_scores(machine, X);
  return machine.of_pairs && scores.cols() > 1 ? votes_of(scores, static_cast<Index>(machine.classes.size())) : scores;
}

// ---- reading ----------------------------------------------------------------------------------------------------

Curve curve_of(const JsonReader& reader, record::Record& record) {
  const std::string name = record.text("estimator");
  if (name == "PlattScaling") return PlattScaling{record.needed(reader, "slope"), record.needed(reader, "offset")};
  if (name == "Temperature") {
    const Temperature out{record.needed(reader, "temperature")};
    if (!(out.temperature > 0.0)) record.fail(reader, "temperature must be positive");
    return out;
  }
  const auto& at = record.array(reader, "at").numbers;
  const auto& heights = record.array(reader, "heights").numbers;
  if (at.empty() || at.size() != heights.size()) record.fail(reader, "at and heights must have one shape");
  if (!std::is_sorted(at.begin(), at.end()) || !std::is_sorted(heights.begin(), heights.end())) {
    record.fail(reader, "at and heights must rise");
  }
  if (heights.front() < 0.0 || heights.back() > 1.0) record.fail(reader, "heights must lie between 0 and 1");
  const auto size = static_cast<Index>(at.size());
  return IsotonicCurve{ConstVectorMap(at.data(), size), ConstVectorMap(heights.data(), size)};
}

/// The curves of a calibrated machine of these classes.
std::vector<Curve> curves_of(const JsonReader& reader, record::Record& record) {
  const std::string method = record.text("method").empty() ? "sigmoid" : record.text("method");
  using Kind = std::pair<std::string_view, std::string_view>;
  constexpr Kind kinds[] = {{"sigmoid", "PlattScaling"}, {"isotonic", "IsotonicCurve"}, {"temperature", "Temperature"}};
  const std::size_t n_classes = record.classes.size();
  const std::size_t n_curves = method == "temperature" || n_classes == 2 ? 1 : n_classes;
  if (record.curves.size() != n_curves) {
    record.fail(reader, std::to_string(record.curves.size()) + " curves do not go with " + std::to_string(n_classes) +
                            " classes");
  }
  std::vector<Curve> out;
  for (record::Record& curve : record.curves) {
    const std::string name = curve.text("estimator");
    if (std::find(std::begin(kinds), std::end(kinds), Kind{method, name}) == std::end(kinds)) {
      curve.fail(reader, std::string("\"").append(name).append("\" does not go with method \"").append(method) + '"');
    }
    out.push_back(curve_of(reader, curve));
  }
  return out;
}

/// The record of a machine, or of one within it.
// NOLINTNEXTLINE(misc-no-recursion): the reader has counted the depth
Machine machine_of(const JsonReader& reader, record::Record& record) {
  Machine out;
  const std::string name = record.text("estimator");
  if (name == "UncertainCalibratedClassifier" || name == "FrozenEstimator") {
    out = machine_of(reader, record.at(reader, "machine"));
    if (name == "FrozenEstimator") return out;
    if (!out.curves.empty()) record.fail(reader, "is calibrated twice");
    if (out.classes.empty() || out.classes != record.classes) {
      record.fail(reader, "classes are not those of the machine");
    }
    out.curves = curves_of(reader, record);
    return out;
  }
  out.estimator = name;
  if (record.arrays.count("dual_coef") == 0 && record::is_linear(name)) {
    SavedModel saved = record::linear_machine(reader, record);
    out.model = std::move(saved.model);
    out.classes = std::move(saved.classes);
    out.feature_names = std::move(saved.feature_names);
    return out;
  }
  if (name != "UncertainKernelSVC" && name != "IsotropicKernelSVC" && name != "TotalSVC") {
    record.fail(reader, name.empty() ? "\"estimator\" is missing" : name + " has no kernel");
  }
  KernelModel kernel = record::kernel_model(reader, record);
  const auto n_names = static_cast<Index>(record.feature_names.size());
  if (n_names != 0 && n_names != kernel.support->n_features()) {
    record.fail(reader, std::to_string(n_names) + " feature_names do not go with " +
                            std::to_string(kernel.support->n_features()) + " features");
  }
  out.model = std::move(kernel);
  out.of_pairs = name == "UncertainKernelSVC";
  out.of_means = !out.of_pairs;
  out.shows_pairs = record.text("decision_function_shape") == "ovo";
  out.classes = std::move(record.classes);
  out.feature_names = std::move(record.feature_names);
  return out;
}

}  // namespace

Examples::Examples(std::shared_ptr<const Matrix> means, std::shared_ptr<const Matrix> stds)
    : means_(std::move(means)), stds_(std::move(stds)), view_(gaussians_of(*means_, stds_.get())) {}

Matrix Machine::decision_function(const Examples& X) const {
  return shows_pairs ? own_scores(*this, X) : scores_of_classes(*this, X);
}

Matrix Machine::decision_std(const Examples& X) const {
  const Mixtures& examples = X.view();
  const auto* linear = std::get_if<LinearModel>(&model);
  const auto* of_kernel = std::get_if<KernelModel>(&model);
  Matrix out(examples.n_samples(), linear != nullptr ? linear->coef.rows() : of_kernel->coefficients.rows());
  if (linear != nullptr) {
    check::require(examples.plain(), "X", "has mixtures, which linear machines do not take");
    halosvm::decision_std(*linear, examples.components().covariances(), out, execution);
  } else {
    check::require(!of_means || X.certain(), "X", "has errors, which " + estimator + " does not take here");
    halosvm::decision_std(*of_kernel, examples, out, execution);
  }
  return out;
}

std::vector<ClassLabel> Machine::predict(const Examples& X) const {
  check::require(!classes.empty(), "X", "is to be classified by " + estimator + ", whose scores are values");
  const Matrix scores = curves.empty() ? scores_of_classes(*this, X) : predict_proba(X);
  std::vector<ClassLabel> labels;
  for (Index i = 0; i < scores.rows(); ++i) {
    const double* row = scores.row(i).data();
    const Index best =
        scores.cols() == 1 ? static_cast<Index>(*row > 0.0) : std::max_element(row, row + scores.cols()) - row;
    labels.push_back(classes[static_cast<std::size_t>(best)]);
  }
  return labels;
}

Matrix Machine::predict_proba(const Examples& X) const {
  check::require(!curves.empty(), "X", "is to get probabilities by " + estimator + ", which is not calibrated");
  const Matrix scores = scores_of_classes(*this, X);
  Matrix stds = Matrix::Zero(scores.rows(), scores.cols());
  if (!X.certain()) {
    check::require(scores.cols() == 1, "X", "has errors, of which more than two classes have no probabilities here");
    stds = decision_std(X);
  }
  return probabilities(curves, scores, stds);
}

Machine Machine::read(std::string_view text) {
  JsonReader reader(text);
  record::Record record = record::read(reader, false);
  return machine_of(reader, record);
}

Machine Machine::load(const std::string& path) { return record::from_file(path, read); }

}  // namespace halosvm
