/// \file
/// The whole flow in one step: Gaussians and their labels come in, a classifier goes out, which predicts, says how good
/// it is, and is saved. What it is made of, for other losses of your own, data in chunks or kernels, are the stations.
#pragma once

#include "halosvm/gaussians/gaussians.hpp"
#include "halosvm/loss/loss.hpp"
#include "halosvm/solver/solver.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Labels, any integers: of a std::vector, an Eigen vector, or another range.
struct Labels {
  std::vector<std::int64_t> values;  ///< one for each example

  /// In braces.
  Labels(std::initializer_list<std::int64_t> labels) : values(labels) {}
  /// Of a range.
  template <class Range>
  Labels(const Range& labels) {  // NOLINT(*-explicit-constructor): what holds integers are labels
    static_assert(std::is_integral_v<std::decay_t<decltype(*labels.begin())>>, "labels are integers");
    values.assign(labels.begin(), labels.end());
  }
};

/// A linear classifier of uncertain examples, fitted or loaded; the Python package's files are its files.
struct LinearClassifier {
  Result result;                      ///< model, status, certified suboptimality; of a loaded one the model alone
  std::vector<std::int64_t> classes;  ///< in ascending order
  double C = 1.0;                     ///< it was fitted with
  std::string loss;                   ///< likewise
  Execution execution;                ///< of its calls

  /// The class of each example: of two the second where f > 0, of more that of the largest f.
  /// \param means n_samples x n_features.
  std::vector<std::int64_t> predict(const ConstMatrixRef& means) const;
  /// f, the score of a certain example and the mean score of an uncertain one: n_samples x 1, or x n_classes.
  Matrix decision_function(const ConstMatrixRef& means) const;
  /// The standard deviation of f, of examples whose features have errors of their own: of the same shape.
  /// \param stds standard deviations, n_samples x n_features.
  Matrix decision_std(const ConstMatrixRef& stds) const;

  /// Writes a model file, as save_model().
  void save(const std::string& path) const;
  /// Reads one. \throws std::invalid_argument also where classes are no integers, which load_model() reads.
  static LinearClassifier load(const std::string& path);
};

/// The support vector machine of uncertain examples: 1/2 |w|^2 + C sum_i E max(0, 1 - y_i (w'x + b)), x ~ N(x_i, S_i),
/// or another loss in place of this one; more than two classes one against the rest. Arrays are read, never kept.
/// \throws std::invalid_argument that names the argument, the row and the value.
struct UncertainSVC {
  double C = 1.0;                           ///< weight of the losses against |w|^2
  std::string loss = loss_names().front();  ///< one of loss_names()
  bool fit_intercept = true;                ///< false: b = 0
  BatchSettings solver;                     ///< tolerance, iterations, method
  Execution execution;                      ///< number of threads, and a hook that stops the fit

  /// Examples N(means_i, diag(stds_i^2)). \param means, stds n_samples x n_features.
  LinearClassifier fit(const ConstMatrixRef& means, const ConstMatrixRef& stds, const Labels& labels) const;
  /// Examples N(means_i, covariances_i), each n_features x n_features.
  LinearClassifier fit(const ConstMatrixRef& means, const std::vector<Eigen::MatrixXd>& covariances,
                       const Labels& labels) const;
  /// Certain examples.
  LinearClassifier fit(const ConstMatrixRef& means, const Labels& labels) const;
  /// Examples of any kind: sparse ones, factors of covariances, bounded errors.
  LinearClassifier fit(const Gaussians& examples, const Labels& labels) const;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
