/// \file
/// The M step and the prior. Private to populations.
#pragma once

#include "population/expectation.hpp"

namespace halosvm::population {

/// A component of less than this part of the weight of its class has died: the objective hardly depends on it, and an
/// extrapolation could carry it anywhere. It keeps its place with the weight 0 and the shape of the largest of its
/// class.
inline constexpr double dead = 1e-8;

/// Gives components of less weight the weight 0 and the shape of the largest of their class.
void bury_dead(Population& population);

/// Gives weights that are held their values in \p like, and the others the rest, in their proportions.
void keep_held_weights(Population& population, const Population& like);

/// What joins the members of each component: examples of weight nu, with the scatter W = diag(scatter), of full
/// covariances diag(scatter) + matrix.
struct Prior {
  const Vector& scatter;
  const Matrix& matrix;  ///< or empty
  double weight;
  double offset_weight;            ///< number of batches
  const Vector& offset_variances;  ///< of their offsets
  /// Whether W has entries off its diagonal.
  bool is_matrix() const { return matrix.size() > 0; }
  /// W of full covariances.
  Matrix whole() const {
    Matrix out = scatter.asDiagonal();
    if (is_matrix()) out += matrix;
    return out;
  }
  bool any() const { return weight > 0.0 || (scatter.array() > 0.0).any() || is_matrix(); }
};

/// Moments of a component's posteriors about its old mean, divided by its mass.
struct Moments {
  Vector shift;   ///< E (v - m), d
  Vector spread;  ///< diagonal of E (v - m)(v - m)', d
  Vector latent;  ///< E z, h
  Matrix cross;   ///< E (v - m) z', d x h
  Matrix square;  ///< E z z', h x h
};

/// The moments of component k, whose mass must not be 0; not of full covariances.
Moments moments_of(const Population& old, const Statistics& sums, Index k);

/// Sums of the engines that factorise T, in the form of the engine for diagonal errors.
Statistics latent_sums(const Population& population, const Statistics& sums);

/// The population of the largest expected likelihood.
Population maximise(const Population& population, const Statistics& sums, double total_weight, const Prior& prior);

/// -1/2 sum_k [tr(W V_k^-1) + nu log|nu W^-1 V_k|] over the components that live, of factors with their diagonal in
/// place of V_k; -infinity where V_k is singular and the prior is not 0. No term is above 0, so that a death is no
/// loss.
double log_prior(const Population& population, const Prior& prior);

}  // namespace halosvm::population
