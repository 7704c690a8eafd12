/// \file
/// Mixtures of Gaussians, as examples of expected kernels (spec K.6). Only a view; the caller keeps the arrays.
#pragma once

#include "halosvm/gaussians/gaussians.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Examples that are mixtures of Gaussians, each with any number of components.
class Mixtures {
 public:
  /// Each Gaussian by itself: what takes mixtures takes Gaussians.
  Mixtures(const Gaussians& components)  // NOLINT(*-explicit-constructor)
      : components_(components), n_samples_(components.n_samples()) {}

  /// \param components those of all mixtures, in order. \param offsets n_samples + 1 numbers from 0: mixture i has the
  /// components offsets[i] ... offsets[i + 1] - 1, at least one. \param weights one for each component, of each mixture
  /// with the sum 1. Both arrays must outlive this object.
  /// \throws std::invalid_argument for offsets that do not ascend to the number of components, weights below 0, and
  /// sums that differ from 1 by more than 1e-6.
  Mixtures(const Gaussians& components, const Index* offsets, Index n_samples, const double* weights);

  /// Number of mixtures.
  Index n_samples() const { return n_samples_; }
  /// Number of features.
  Index n_features() const { return components_.n_features(); }
  /// The components of all mixtures, in order.
  const Gaussians& components() const { return components_; }

  /// Every mixture has one component.
  bool plain() const { return offsets_ == nullptr; }
  /// Components of mixture i: begin(i) ... end(i) - 1.
  Index begin(Index i) const { return plain() ? i : offsets_[i]; }
  /// The component after the last of mixture \p i.
  Index end(Index i) const { return begin(i + 1); }
  /// The weight of a component within its mixture.
  double weight(Index component) const { return plain() ? 1.0 : weights_[component]; }

 private:
  Gaussians components_;
  const Index* offsets_ = nullptr;
  const double* weights_ = nullptr;
  Index n_samples_;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
