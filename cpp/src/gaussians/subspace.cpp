// Truncation: covariances come in, the leading factors of each go out.

#include "halosvm/gaussians/subspace.hpp"

#include "halosvm/core/check.hpp"
#include "halosvm/gaussians/covariances/full.hpp"
#include "halosvm/gaussians/covariances/low_rank.hpp"
#include "linalg/leading_eigenpairs.hpp"
#include "linalg/multiply.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

namespace halosvm {
namespace {

void require_fraction(double p) {
  check::require(p > 0.0 && p <= 1.0, "p", "must be above 0 and at most 1, got " + check::text(p));
}

[[noreturn]] void refuse_kind(const Covariances& covariances, const std::string& expected) {
  check::fail("covariances", std::string("are ") + covariances.kind() + ", expected " + expected);
}

/// The truncation of one example after another, with the memory that takes; one for each thread.
class Truncation {
 public:
  Truncation(const Covariances& covariances, double p) : p_(p), scratch_(covariances.scratch_size({1, 1})) {}

  /// Factor of a full covariance, U sqrt(lambda).
  Matrix of_full(const FullCovariances& full, Index row, Checkpoint& checkpoint) {
    const Index d = full.n_features();
    dense_.setZero(d, d);
    full.add_weighted_matrices({row, 1}, one_, dense_, scratch_.data());
    return of_dense(full.precision(), checkpoint);
  }

  /// Factor of F F': F V with the eigenvectors V of F' F, whose columns have the lengths sqrt(lambda).
  Matrix of_factor(const LowRankCovariances& low_rank, Index row, Checkpoint& checkpoint) {
    low_rank.copy_factor(row, factor_);
    if (factor_.cols() > factor_.rows()) {
      linalg::multiply(factor_, factor_.transpose(), dense_);
      return of_dense(0x1p-53, checkpoint);
    }
    linalg::multiply(factor_.transpose(), factor_, dense_);
    eigenpairs_.compute(dense_, p_, 0x1p-53, checkpoint);
    return factor_ * eigenpairs_.vectors();
  }

 private:
  Matrix of_dense(double precision, Checkpoint& checkpoint) {
    eigenpairs_.compute(dense_, p_, precision, checkpoint);
    return eigenpairs_.vectors() * eigenpairs_.values().cwiseSqrt().asDiagonal();
  }

  double p_;
  Vector scratch_;
  Vector one_ = Vector::Ones(1);
  Matrix dense_;
  Matrix factor_;
  linalg::LeadingEigenpairs eigenpairs_;
};

/// Examples in a task: enough that starting one costs nothing.
Chunks chunks_of(const Covariances& covariances) {
  const Index d = covariances.n_features();
  return {covariances.n_samples(), std::max<Index>(1, 20000 / (1 + d * d))};
}

}  // namespace

Index kept_rank(const ConstVectorRef& eigenvalues, double total, double p) {
  constexpr double slack = 1e-12;
  constexpr double tie = 1e-10;
  const Index size = eigenvalues.size();
  const Index positive =
      std::partition_point(eigenvalues.data(), eigenvalues.data() + size, [](double value) { return value > 0.0; }) -
      eigenvalues.data();
  if (p >= 1.0) return positive;
  double sum = 0.0;
  Index rank = 0;
  while (rank < positive && sum < p * total * (1.0 - slack)) sum += eigenvalues(rank++);
  while (rank > 0 && rank < positive && eigenvalues(rank) >= eigenvalues(rank - 1) * (1.0 - tie)) ++rank;
  return rank;
}

SubspaceFactors::SubspaceFactors(std::vector<Matrix> factors) : factors_(std::move(factors)) {
  offsets_.reserve(factors_.size() + 1);
  offsets_.push_back(0);
  for (const auto& factor : factors_) offsets_.push_back(offsets_.back() + factor.cols());
}

template <class T>
void SubspaceFactors::write_as(T* out) const {
  if (offsets_.back() > 0) check::given(out, "out");
  for (const auto& factor : factors_) {
    out = std::transform(factor.data(), factor.data() + factor.size(), out,
                         [](double value) { return static_cast<T>(value); });
  }
}

template void SubspaceFactors::write_as(double* out) const;
template void SubspaceFactors::write_as(float* out) const;

SubspaceFactors truncate(const Covariances& covariances, double p, const Execution& execution) {
  require_fraction(p);
  covariances.check_once("covariances", execution);
  const auto* full = dynamic_cast<const FullCovariances*>(&covariances);
  const auto* low_rank = dynamic_cast<const LowRankCovariances*>(&covariances);
  if (full == nullptr && low_rank == nullptr) refuse_kind(covariances, "full or low_rank");
  std::vector<Matrix> factors(static_cast<std::size_t>(covariances.n_samples()));
  const Chunks chunks = chunks_of(covariances);
  std::deque<Truncation> truncations;  // which never moves what it holds
  for (int slot = 0; slot < thread_count(chunks.count(), execution); ++slot) truncations.emplace_back(covariances, p);
  run_tasks(chunks.count(), execution, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    Truncation& truncation = truncations[static_cast<std::size_t>(slot)];
    for (Index row = chunks.begin(chunk); row < chunks.end(chunk); ++row) {
      checkpoint();
      factors[static_cast<std::size_t>(row)] = full != nullptr ? truncation.of_full(*full, row, checkpoint)
                                                               : truncation.of_factor(*low_rank, row, checkpoint);
    }
  });
  return SubspaceFactors(std::move(factors));
}

void truncate_diagonal(const Covariances& covariances, double p, std::uint8_t* kept, const Execution& execution) {
  require_fraction(p);
  if (covariances.kind() != std::string("diagonal")) refuse_kind(covariances, "diagonal");
  covariances.check_once("covariances", execution);
  if (covariances.n_samples() * covariances.n_features() > 0) check::given(kept, "kept");
  const Index d = covariances.n_features();
  const Chunks chunks(covariances.n_samples(), std::max<Index>(1, 20000 / (1 + d)));
  run_tasks(chunks.count(), execution, [&](Index chunk, int /*slot*/, Checkpoint& checkpoint) {
    Vector scratch(covariances.scratch_size({1, 1}));
    const Vector one = Vector::Ones(1);
    Vector variances(d);
    Vector sorted(d);
    for (Index row = chunks.begin(chunk); row < chunks.end(chunk); ++row) {
      checkpoint();
      variances.setZero();
      covariances.add_weighted_diagonals({row, 1}, one, variances, scratch.data());
      sorted = variances;
      std::sort(sorted.data(), sorted.data() + d, std::greater<>());
      const Index rank = kept_rank(sorted, sorted.sum(), p);
      for (Index j = 0; j < d; ++j) kept[row * d + j] = rank > 0 && variances(j) >= sorted(rank - 1) ? 1 : 0;
    }
  });
}

}  // namespace halosvm
