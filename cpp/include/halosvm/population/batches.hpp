/// \file
/// Errors that the rows of a batch share (spec O.2): measurements with the batch of each row enter, the population, the
/// covariance W of the offsets of batches, and what is known of each offset leave.
/// x_i = v_i + o_g(i) + e_i, o_g ~ N(0, W), with v_i, e_i and missing values as in %empirical_bayes.hpp.
#pragma once

#include "halosvm/population/empirical_bayes.hpp"

#include <memory>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Measurements whose rows belong to batches.
class BatchedMeasurements {
 public:
  /// \param X means (NaN: missing) and errors, which must outlive this object, as must \p weights.
  /// \param weights of the rows, or null; rows of weight 0 are left out.
  /// \param batches 0, 1, ... of each row.
  /// \param classes of each row, or empty: unknown. A row of a class comes from the components of that class alone.
  /// \param summed rows of one batch, class, error and pattern of missing values are read as one, which needs each row
  /// to come from one component.
  /// \throws std::invalid_argument as Measurements, and for lists of another length than \p X has rows.
  BatchedMeasurements(const Gaussians& X, const double* weights, const std::vector<Index>& batches,
                      const std::vector<Index>& classes, bool summed, const Execution& execution);
  ~BatchedMeasurements();
  /// Takes over what the other has prepared.
  BatchedMeasurements(BatchedMeasurements&&) noexcept;

  /// Number of batches, the largest of the rows plus 1.
  Index n_batches() const;

  /// What is prepared; known to the library alone.
  struct Prepared;
  /// What is prepared, for the functions below.
  const Prepared& prepared() const { return *prepared_; }

 private:
  std::unique_ptr<Prepared> prepared_;
};

/// Maximises the likelihood with offsets, as that of %empirical_bayes.hpp does without. It is exact, and never falls,
/// where each row comes from one component: the offsets are integrated. With more components for a row, a lower bound
/// of it grows, in which components and offsets are taken for independent beyond what each tells of the other's mean.
/// \param start with its covariance of offsets.
PopulationFit fit_population(const BatchedMeasurements& X, const Population& start, const PopulationSettings& settings,
                             const Execution& execution);

/// The posterior of the offset of each batch, from all of its rows.
/// \param known what is known of them without these rows, or null: N(0, W).
/// \throws std::invalid_argument that names the row and the component where V_k + S_i is singular.
BatchOffsets batch_offsets(const Population& population, const BatchedMeasurements& X, const BatchOffsets* known,
                           const Execution& execution);

/// Measurements of rows by themselves that tell of v_i what all rows of the batch together tell.
struct LoneRows {
  double* means = nullptr;        ///< x_i less the mean of the offset by the other rows of the batch, n x d
  double* covariances = nullptr;  ///< S_i plus the covariance of that offset, (n d) x d
};

/// Takes the offsets out of measurements: what the other rows of a batch tell of its offset is a measurement of it, and
/// its error adds to that of the row. The class of a row enters what the others know, never its own posterior.
/// \param classes as those that the offsets were found with.
/// \param offsets posteriors from all rows.
/// \param parts of each row, 0 to 1, that these posteriors contain.
void remove_offsets(const Population& population, const Gaussians& X, const std::vector<Index>& batches,
                    const std::vector<Index>& classes, const BatchOffsets& offsets, const ConstVectorRef& parts,
                    const LoneRows& out, const Execution& execution);

}  // namespace halosvm
HALOSVM_PUBLIC_END
