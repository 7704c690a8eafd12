/// \file
/// One door for every machine that the Python package's save_model() has written and C++ programs predict with: linear
/// or of a kernel, of classes or of values, calibrated or not. Examples come in, scores, classes, probabilities go out.
#pragma once

#include "halosvm/model/calibration.hpp"
#include "halosvm/model/kernel_model.hpp"
#include "halosvm/model/linear_model.hpp"
#include "halosvm/model/model_file.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <utility>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Examples to predict: a view of Gaussians or mixtures, or a copy of points, with standard deviations or without.
class Examples {
 public:
  /// The caller keeps the arrays.
  Examples(Mixtures mixtures) : view_(std::move(mixtures)) {}  // NOLINT(*-explicit-constructor): they are examples
  /// Likewise.
  Examples(const Gaussians& gaussians) : view_(gaussians) {}  // NOLINT(*-explicit-constructor)
  /// Certain examples. \param points n_samples x n_features, of any storage order.
  template <class Derived>
  Examples(const Eigen::MatrixBase<Derived>& points)  // NOLINT(*-explicit-constructor)
      : Examples(std::make_shared<const Matrix>(points), nullptr) {}
  /// Examples with errors of each feature. \param means, stds n_samples x n_features.
  template <class First, class Second>
  Examples(const Eigen::MatrixBase<First>& means, const Eigen::MatrixBase<Second>& stds)
      : Examples(std::make_shared<const Matrix>(means), std::make_shared<const Matrix>(stds)) {}

  /// The examples as the kernels take them.
  const Mixtures& view() const { return view_; }
  /// Whether none has errors.
  bool certain() const { return view_.plain() && view_.components().covariances().certain(); }

 private:
  Examples(std::shared_ptr<const Matrix> means, std::shared_ptr<const Matrix> stds);

  std::shared_ptr<const Matrix> means_;
  std::shared_ptr<const Matrix> stds_;
  Mixtures view_;
};

/// A machine of a model file, with what else the file says of its predictions.
struct Machine {
  std::string estimator;                         ///< its name in Python, as "UncertainKernelSVC"
  std::variant<LinearModel, KernelModel> model;  ///< its scores
  bool of_pairs = false;     ///< more than two classes have a score for each pair (0, 1), (0, 2), ..., (1, 2), ...
  bool of_means = false;     ///< its kernel takes the means of uncertain examples, not their expectations
  bool shows_pairs = false;  ///< decision_function() returns those scores, as with "ovo" in Python
  std::vector<ClassLabel> classes;         ///< ascending; of two the second is f > 0; empty for values
  std::vector<Curve> curves;               ///< of an UncertainCalibratedClassifier, as probabilities() takes them
  std::vector<std::string> feature_names;  ///< one for each feature, or none
  Execution execution;                     ///< of its calls

  /// Scores, of uncertain examples as Python's decision_function: n_samples x 1 for two classes or values, else a
  /// column for each class, or for each pair. Of a calibrated machine those of the machine within.
  /// \throws std::invalid_argument for examples that do not go with the machine.
  Matrix decision_function(const Examples& X) const;
  /// Their standard deviations, for each pair where scores are of pairs; 0 for certain examples.
  /// \throws std::invalid_argument likewise, and for kernels without closed form.
  Matrix decision_std(const Examples& X) const;
  /// The class of each example; of a calibrated machine the most probable one.
  std::vector<ClassLabel> predict(const Examples& X) const;
  /// Probabilities n_samples x n_classes of a calibrated machine, for two classes expected over errors.
  /// \throws std::invalid_argument likewise, for machines without curves, and for errors where there are more classes.
  Matrix predict_proba(const Examples& X) const;

  /// Reads the text of a model file.
  /// \throws std::invalid_argument with line and column for text that is no machine, or damaged.
  static Machine read(std::string_view text);
  /// Reads a file. \throws std::invalid_argument likewise, std::runtime_error when it cannot be read.
  static Machine load(const std::string& path);
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
