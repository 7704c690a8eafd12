/// \file
/// Decision values f come in, probabilities go out: Platt scaling, p = 1 / (1 + exp(A f + B)) (spec E; Lin, Lin and
/// Weng, 2007), rising curves and a temperature.
#pragma once

#include "halosvm/core/types.hpp"

#include <cstdint>
#include <variant>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Probabilities of decision values by a logistic curve (spec E).
struct PlattScaling {
  double slope = 0.0;   ///< A
  double offset = 0.0;  ///< B

  /// P(y = 1 | f).
  double probability(double f) const;

  /// E P(y = 1 | F) for F ~ N(mean, std^2), within 1e-4 of the exact value.
  double expected_probability(double mean, double std) const;
};

/// A rising curve: linear between its points, constant outside of them.
struct IsotonicCurve {
  Vector at;       ///< ascending
  Vector heights;  ///< probabilities there, ascending; as many, at least one

  /// E P(y = 1 | F) for F ~ N(mean, std^2).
  double expected_probability(double mean, double std) const;
};

/// Probabilities of several classes that go as exp(f_k / temperature); of two classes a logistic curve in f.
struct Temperature {
  double temperature = 1.0;  ///< positive

  /// E P(y = 1 | F) of two classes for F ~ N(mean, std^2), as that of Platt scaling.
  double expected_probability(double mean, double std) const {
    return PlattScaling{-1.0, 0.0}.expected_probability(mean / temperature, std / temperature);
  }
};

/// From scores to probabilities, by a curve of one kind.
using Curve = std::variant<PlattScaling, IsotonicCurve, Temperature>;

/// Probabilities of all classes, n_samples x n_classes, expected over the errors of scores of two classes.
/// \param curves one for two classes, or a temperature; else one for each class, whose values are divided by their sum.
/// \param scores n_samples x 1 for two classes, else x n_classes. \param stds their standard deviations, likewise.
/// \throws std::invalid_argument for sizes that do not go together, and for errors of scores of more classes.
Matrix probabilities(const std::vector<Curve>& curves, const ConstMatrixRef& scores, const ConstMatrixRef& stds);

/// Fits by Newton's method with a line search; the targets are drawn in from 0 and 1 by the class weights, so that
/// separable data stay finite. With one class only, A = 0. f and c f + d give the same probabilities.
/// \param decision decision values, best from cross-validation. \param positive 1 for y = 1, else 0, same length.
/// \param weights same length, >= 0, or null for equal weights.
/// \throws std::invalid_argument when there is no positive weight, or a value is not finite, or A would not be.
PlattScaling fit_platt(const ConstVectorRef& decision, const std::uint8_t* positive, const double* weights);

}  // namespace halosvm
HALOSVM_PUBLIC_END
