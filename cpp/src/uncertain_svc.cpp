// The whole flow: Gaussians and labels come in, a classifier goes out.

#include "halosvm/uncertain_svc.hpp"

#include "halosvm/core/check.hpp"
#include "halosvm/gaussians/covariances/diagonal.hpp"
#include "halosvm/gaussians/covariances/full.hpp"
#include "halosvm/model/model_file.hpp"
#include "halosvm/objective/local_objective.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <variant>

namespace halosvm {
namespace {

/// Rows one after another, copied only where there is something between them.
struct Table {
  explicit Table(const ConstMatrixRef& rows, bool squared = false) {
    const double* data = rows.data();
    if (rows.outerStride() != rows.cols()) {
      copy = rows;
      data = copy.data();
    }
    view = ArrayView(data, rows.rows(), rows.cols(), squared);
  }
  Matrix copy;
  ArrayView view;
};

/// The place of each label among the classes.
std::vector<std::int16_t> codes_of(const Labels& labels, const std::vector<std::int64_t>& classes) {
  std::vector<std::int16_t> codes;
  codes.reserve(labels.values.size());
  for (const std::int64_t label : labels.values) {
    codes.push_back(
        static_cast<std::int16_t>(std::lower_bound(classes.begin(), classes.end(), label) - classes.begin()));
  }
  return codes;
}

std::shared_ptr<const Covariances> of_stds(const Table& stds, const Execution& execution) {
  auto covariances = std::make_shared<DiagonalCovariances>(stds.view);
  covariances->check_once("stds", execution);
  return covariances;
}

}  // namespace

LinearClassifier UncertainSVC::fit(const Gaussians& examples, const Labels& labels) const {
  check::positive("C", C);
  const Index n = examples.n_samples();
  check::same_size("labels", static_cast<Index>(labels.values.size()), "means", n, "rows");
  LinearClassifier out;
  out.C = C;
  out.loss = loss;
  out.execution = execution;
  out.classes = labels.values;
  std::sort(out.classes.begin(), out.classes.end());
  out.classes.erase(std::unique(out.classes.begin(), out.classes.end()), out.classes.end());
  const auto n_classes = static_cast<Index>(out.classes.size());
  check::require(n_classes >= 2 && n_classes <= std::numeric_limits<std::int16_t>::max(), "labels",
                 "have " + std::to_string(n_classes) + " classes; there must be two or more, up to 32767");
  const std::vector<std::int16_t> codes = codes_of(labels, out.classes);
  const Index n_problems = n_classes == 2 ? 1 : n_classes;
  const double lam = 1.0 / static_cast<double>(n) / C;
  const LocalObjective objective(examples, {codes.data(), n_problems}, nullptr, lam, make_loss(loss), fit_intercept,
                                 execution);
  out.result = minimize(objective, LinearModel(n_problems, examples.n_features()), solver);
  return out;
}

LinearClassifier UncertainSVC::fit(const ConstMatrixRef& means, const ConstMatrixRef& stds,
                                   const Labels& labels) const {
  const Table means_table(means);
  const Table stds_table(stds, true);
  check::same_size("stds", stds.rows(), "means", means.rows(), "rows");
  check::same_size("stds", stds.cols(), "means", means.cols(), "columns");
  return fit(Gaussians(means_table.view, of_stds(stds_table, execution)), labels);
}

LinearClassifier UncertainSVC::fit(const ConstMatrixRef& means, const std::vector<Eigen::MatrixXd>& covariances,
                                   const Labels& labels) const {
  const Table table(means);
  const Index d = means.cols();
  check::same_size("covariances", static_cast<Index>(covariances.size()), "means", means.rows(), "rows");
  Matrix all(means.rows() * d, d);
  for (Index i = 0; i < means.rows(); ++i) {
    const Eigen::MatrixXd& one = covariances[static_cast<std::size_t>(i)];
    const std::string name = "covariances row " + std::to_string(i);
    check::same_size(name, one.rows(), "means", d, "rows for columns");
    check::same_size(name, one.cols(), "means", d, "columns");
    all.middleRows(i * d, d) = one;
  }
  const ArrayView view(all.data(), all.rows(), d);
  return fit(Gaussians(table.view, std::make_shared<FullCovariances>(view, means.rows())), labels);
}

LinearClassifier UncertainSVC::fit(const ConstMatrixRef& means, const Labels& labels) const {
  const Table table(means);
  return fit(Gaussians(table.view, no_covariances(means.rows(), means.cols())), labels);
}

std::vector<std::int64_t> LinearClassifier::predict(const ConstMatrixRef& means) const {
  const Matrix f = decision_function(means);
  check::same_size("classes", static_cast<Index>(classes.size()), "coef", f.cols() == 1 ? 2 : f.cols(), "classes");
  std::vector<std::int64_t> labels;
  for (Index i = 0; i < f.rows(); ++i) {
    Index best = f(i, 0) > 0.0 ? 1 : 0;
    if (f.cols() > 1) f.row(i).maxCoeff(&best);
    labels.push_back(classes[static_cast<std::size_t>(best)]);
  }
  return labels;
}

Matrix LinearClassifier::decision_function(const ConstMatrixRef& means) const {
  Matrix out(means.rows(), result.model.coef.rows());
  halosvm::decision_function(result.model, Table(means).view, out, execution);
  return out;
}

Matrix LinearClassifier::decision_std(const ConstMatrixRef& stds) const {
  Matrix out(stds.rows(), result.model.coef.rows());
  const Table table(stds, true);
  halosvm::decision_std(result.model, *of_stds(table, execution), out, execution);
  return out;
}

void LinearClassifier::save(const std::string& path) const {
  SavedModel saved;
  saved.model = result.model;
  saved.C = C;
  saved.loss = loss;
  saved.classes.assign(classes.begin(), classes.end());
  save_model(saved, path);
}

LinearClassifier LinearClassifier::load(const std::string& path) {
  const SavedModel saved = load_model(path);
  LinearClassifier out;
  out.result.model = saved.model;
  out.C = saved.C;
  out.loss = saved.loss;
  for (const ClassLabel& label : saved.classes) {
    const auto* whole = std::get_if<std::int64_t>(&label);
    if (whole == nullptr) check::fail("path", "is of a model whose classes are no integers: " + path);
    out.classes.push_back(*whole);
  }
  check::require(!out.classes.empty(), "path", "is of a model without classes: " + path);
  return out;
}

}  // namespace halosvm
