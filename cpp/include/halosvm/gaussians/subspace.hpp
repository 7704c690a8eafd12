/// \file
/// Linear subspaces (spec B; SVM-GSU, section 3.2): of each covariance the leading part that holds a fraction p of its
/// variance. Covariances enter, low-rank factors leave, of a rank for each example.
#pragma once

#include "halosvm/gaussians/covariances.hpp"

#include <cstdint>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// How many eigenvalues to keep: the least number whose sum reaches p * total, within 1e-12 of it, and those tied with
/// the last of them, within 1e-10; for p = 1 all that are positive.
/// \param eigenvalues descending, from the largest; what counts as 0 must be 0. They may end early when those left out
/// are smaller.
Index kept_rank(const ConstVectorRef& eigenvalues, double total, double p);

/// Factors F_i for which F_i F_i' is the kept part of S_i; their columns are orthogonal, of descending length.
class SubspaceFactors {
 public:
  /// \param factors n_features x rank of each example.
  explicit SubspaceFactors(std::vector<Matrix> factors);

  /// n_samples + 1 cumulative ranks from 0.
  const std::vector<Index>& offsets() const { return offsets_; }

  /// Writes the factors one after another, each n_features x rank row-major: n_features * offsets().back() numbers.
  void write(double* out) const { write_as(out); }
  /// The same as float32.
  void write(float* out) const { write_as(out); }

 private:
  template <class T>
  void write_as(T* out) const;

  std::vector<Matrix> factors_;
  std::vector<Index> offsets_;
};

/// Truncates full and low-rank covariances; of F F' + D only the factor's part F F', because a diagonal is cheap to
/// keep whole and dropping it would lose the errors that features have of their own.
///
/// For a full S of order n, eigenvalues up to n epsilon lambda_max count as 0, with the epsilon of the storage. Where p
/// needs few eigenvectors of many, a block Krylov method finds them, with residuals |S u - lambda u| below 1e-10
/// lambda_max (2e-6 in float32); otherwise all are computed. Factors of r < n columns cost the eigenvectors of an
/// r x r matrix. The result does not depend on the number of threads.
/// \throws std::invalid_argument unless 0 < p <= 1 and the covariances are "full" or "low_rank".
SubspaceFactors truncate(const Covariances& covariances, double p, const Execution& execution);

/// Marks the variances of diagonal covariances that are kept, the largest of each example.
/// \param kept n_samples x n_features, row-major: 1 or 0.
/// \throws std::invalid_argument unless 0 < p <= 1 and the covariances are "diagonal".
void truncate_diagonal(const Covariances& covariances, double p, std::uint8_t* kept, const Execution& execution);

}  // namespace halosvm
HALOSVM_PUBLIC_END
