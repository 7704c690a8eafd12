/// \file
/// From measurements to true values (spec N): measured Gaussians enter, the population of true values behind them and
/// the posterior of each true value leave. x_i = v_i + e_i, e_i ~ N(0, S_i), v_i ~ sum_k a_k N(m_k, V_k); NaN marks a
/// value that is missing.
#pragma once

#include "halosvm/gaussians/gaussians.hpp"
#include "halosvm/population/limits.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// How the covariances V_k of a population are stored.
enum class PopulationKind : std::uint8_t {
  full,      ///< any matrix
  diagonal,  ///< diag(variances)
  factors,   ///< factors factors' + diag(variances)
};

/// Which parts of which components a fit leaves as they are, one flag a component; empty: none.
struct HeldParts {
  std::vector<bool> weights;      ///< the a_k
  std::vector<bool> means;        ///< the m_k
  std::vector<bool> covariances;  ///< the V_k

  /// Whether a part of component k is held.
  static bool of(const std::vector<bool>& part, Index k) { return !part.empty() && part[static_cast<std::size_t>(k)]; }
};

/// Form of the covariance W of the offsets that the rows of a batch share.
enum class OffsetForm : std::uint8_t {
  full,       ///< any matrix
  diagonal,   ///< diag(variances)
  isotropic,  ///< one variance for all features
};

/// sum_k a_k N(m_k, V_k) over n_features values.
struct Population {
  PopulationKind kind = PopulationKind::full;  ///< the form of the V_k
  Vector weights;                              ///< a_k >= 0 with the sum 1
  Matrix means;                                ///< m_k, n_components x n_features
  Matrix matrices;                             ///< full: V_k is rows k n_features ... of it
  Matrix factors;                              ///< factors: those of V_k, n_features x n_factors, likewise
  Matrix variances;                            ///< diagonal and factors: n_components x n_features
  /// Class of each component, 0, 1, ... in ascending order, if examples have labels; the weights of all classes have
  /// the sum 1. Empty: one class.
  std::vector<Index> classes;
  bool tied = false;  ///< whether the V_k are one, and a fit keeps them so
  HeldParts held;     ///< what a fit leaves as it is, of populations of one class; no V_k if they are tied
  Matrix offsets;     ///< W of %batches.hpp, n_features x n_features; empty: rows share no errors
  OffsetForm offset_form = OffsetForm::full;  ///< the form of W, which a fit keeps

  /// Number of components.
  Index n_components() const { return means.rows(); }
  /// Number of features.
  Index n_features() const { return means.cols(); }
  /// Number of factors of each component; 0 of other kinds.
  Index n_factors() const { return kind == PopulationKind::factors ? factors.cols() : 0; }
  /// V_k, n_features x n_features.
  Matrix covariance(Index k) const;
  /// Gives component k the V of another.
  void take_shape(Index k, Index other) { take_shape(k, *this, other); }
  /// Gives component k the V of component \p other of a population of the same form.
  void take_shape(Index k, const Population& from, Index other);
  /// Number of classes.
  Index n_classes() const { return classes.empty() ? 1 : classes.back() + 1; }
  /// Components first ... first + count - 1, with their weights as they are, of one class.
  Population components(Index first, Index count) const;

  /// Throws unless shapes agree, all numbers are finite, weights >= 0 with a sum above 0, variances >= 0, classes in
  /// order, and the V_k equal if they are tied.
  void check(const std::string& argument) const;
};

/// Measurements as they are needed again and again: which values are missing, and which rows share their errors.
class Measurements {
 public:
  /// \param X means (NaN: missing) and errors, which must outlive this object, as must \p weights.
  /// \param weights of the examples, or null; rows of weight 0 are left out.
  /// \param limits of values that are NaN, as large as X, which must outlive this object, too.
  /// \throws std::invalid_argument for infinite values, weights that are negative, not finite or all 0, and limits that
  /// contradict each other or stand beside a value.
  Measurements(const Gaussians& X, const double* weights, const Execution& execution, const Limits& limits = {});
  ~Measurements();
  /// Takes over what the other has prepared.
  Measurements(Measurements&&) noexcept;

  /// What is prepared; known to the library alone.
  struct Prepared;
  /// What is prepared, for the functions below.
  const Prepared& prepared() const { return *prepared_; }

 private:
  std::unique_ptr<Prepared> prepared_;
};

/// out(i) = log p(x_i), for every row; 0 where nothing is measured and -infinity where it underflows.
/// \throws std::invalid_argument that names the row and the component where V_k + S_i is singular.
void log_density(const Population& population, const Gaussians& X, VectorRef out, const Execution& execution,
                 const Limits& limits = {});

/// How a population is fitted.
struct PopulationSettings {
  /// Largest number of passes over the data.
  int max_iterations = 500;
  /// Stop when the log likelihood is expected to gain less than this for each unit of weight, in all passes to come.
  double tolerance = 1e-5;
  /// Of the prior: W = diag(prior) is added to the scatter of each component; n_features numbers.
  Vector prior;
  /// Of the prior of full covariances: what W has besides, n_features x n_features, or empty.
  Matrix prior_scatter;
  /// Of the prior: nu, the weight of the examples that this scatter stands for. A component without members ends at
  /// W / nu.
  double prior_weight = 0.0;
  /// Of the prior of the covariance of offsets: as many more batches, of these variances and no correlations.
  double offset_prior_weight = 0.0;
  Vector offset_prior;  ///< n_features variances above 0, or empty
  /// Unit of each feature, in which steps are extrapolated; n_features numbers above 0.
  Vector scale;
  /// False: plain expectation maximisation, as a yardstick.
  bool accelerate = true;
  /// Called after each pass with its number, the objective, and the predicted gain.
  std::function<void(int, double, double)> report;
};

/// How a fit of a population ended.
enum class PopulationStatus : std::uint8_t {
  converged,       ///< the expected gain is below the tolerance
  max_iterations,  ///< the passes are used up
  rounding,        ///< the objective no longer grows in double precision
};

/// One sentence that says how a fit ended.
const char* sentence(PopulationStatus status);

/// What is known of the offset of each batch: N(mean, covariance).
struct BatchOffsets {
  Matrix means;        ///< n_batches x n_features
  Matrix covariances;  ///< (n_batches n_features) x n_features
};

/// A fitted population, and the way to it.
struct PopulationFit {
  Population population;  ///< the best point that was found
  /// Log likelihood plus log prior, -1/2 sum_k [tr(W V_k^-1) + nu log|nu W^-1 V_k|] over the components of a weight
  /// above 0, and the like of the offsets, at each accepted point; it never decreases.
  std::vector<double> history;
  int iterations = 0;                                          ///< passes over the data
  double predicted_gain = 0.0;                                 ///< of the objective, from the last point to its limit
  PopulationStatus status = PopulationStatus::max_iterations;  ///< how the fit ended
  BatchOffsets offsets;                                        ///< of the batches, if rows belong to any
};

/// Maximises the likelihood by expectation maximisation with a covariance for each example (Bovy, Hogg, Roweis 2011):
/// first its plain steps, then those of L-BFGS, each kept only where the objective grows; where it does not, the plain
/// step is taken.
PopulationFit fit_population(const Measurements& X, const Population& start, const PopulationSettings& settings,
                             const Execution& execution);
/// The same for examples with labels (spec P): those of class c, \p X[c], come from the components of their class
/// alone, and the likelihood is that of examples and labels. The weights of a class sum to its share of all.
PopulationFit fit_population(const std::vector<const Measurements*>& X, const Population& start,
                             const PopulationSettings& settings, const Execution& execution);

/// Where posteriors go, row by row and within a row component by component; the caller owns the memory. Null is left
/// out.
struct PosteriorTarget {
  double* responsibilities = nullptr;  ///< n x k
  double* means = nullptr;             ///< (n c) x d, c components a row
  double* variances = nullptr;         ///< (n c) x d, of diagonal and low_rank
  double* factors = nullptr;           ///< (n c d) x rank, of low_rank
  double* matrices = nullptr;          ///< (n c d) x d, of full
};

/// The posteriors of the true values behind measurements: mixtures, or each joined to the one Gaussian of its moments.
class Posteriors {
 public:
  /// The smallest kind in which the posterior covariances are exact.
  enum class Kind : std::uint8_t { zero, diagonal, low_rank, full };

  /// \p population and \p X must outlive this object.
  Posteriors(const Population& population, const Gaussians& X, bool joined, const Execution& execution,
             const Limits& limits = {});

  /// The kind that \ref PosteriorTarget needs memory for.
  Kind kind() const { return kind_; }
  /// Number of columns of the factors of low_rank.
  Index rank() const { return rank_; }
  /// Components of each posterior: those of the population, or 1 if joined.
  Index n_components() const { return joined_ ? 1 : population_.n_components(); }

  /// Covariances are products of positive semi-definite terms, never differences: they keep their digits however small
  /// or large the errors are. What is not measured at all has the population as posterior.
  void write(const PosteriorTarget& target) const;

 private:
  void write_latent(const PosteriorTarget& target, const double* responsibilities) const;
  void write_factorised(const PosteriorTarget& target, const double* responsibilities) const;

  const Population& population_;
  const Measurements measurements_;
  const Execution execution_;
  bool joined_;
  Kind kind_ = Kind::full;
  Index rank_ = 0;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
