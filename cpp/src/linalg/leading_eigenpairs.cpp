// The largest eigenvalues of a symmetric matrix and their vectors, few or all.

#include "linalg/leading_eigenpairs.hpp"

#include "halosvm/gaussians/subspace.hpp"
#include "linalg/inverse_iteration.hpp"
#include "linalg/multiply.hpp"
#include "linalg/orthonormal_columns.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::linalg {
namespace {

/// Below, the full decomposition costs less than an attempt at a part.
constexpr Index least_order = 150;
/// Below, the QR iteration is as fast.
constexpr Index least_order_of_inverse_iteration = 48;
/// Of the order: as large a basis still costs a fraction of the full decomposition.
constexpr Index order_per_basis = 3;
/// Of the basis: more vectors than that do not settle in time.
constexpr Index basis_per_vector = 2;
/// Columns of a block: the fewer, the higher the power of S that a basis reaches, but the dearer a column.
constexpr Index krylov_block = 8;
/// Before, the sum of what is to come cannot be guessed.
constexpr Index least_basis = 6 * krylov_block;
/// Eigenvalues this close may be one eigenvalue, whose eigenvectors a basis grown from one block can miss.
constexpr double cluster_width = 1e-8;

/// The sum of k eigenvalues is at most sqrt(k) |S|_F, so that fewer than this many cannot reach a sum.
double least_rank(double sum, double squared_norm) { return sum * sum / squared_norm; }

}  // namespace

void LeadingEigenpairs::compute(const ConstMatrixRef& S, double p, double precision, Checkpoint& checkpoint) {
  const Index n = S.rows();
  rank_ = 0;
  scale_ = n > 0 ? S.cwiseAbs().maxCoeff() : 0.0;
  if (scale_ == 0.0) {
    vectors_.resize(n, 0);
    return;
  }
  scale_ = std::max(scale_, 1e-300);         // whose inverse is finite
  matrix_ = S.transpose() * (1.0 / scale_);  // row-major transposed is column-major: a plain copy
  total_ = matrix_.trace();

  // A part is told from its sum, which says nothing of what lies within rounding of the whole.
  const bool in_part = n >= least_order && 1.0 - p > 1e-8 &&
                       least_rank(p * total_, matrix_.squaredNorm()) * 10.0 < static_cast<double>(n);
  if (!in_part || !compute_few(p, std::max(1e-11, 4.0 * precision), checkpoint)) compute_all(p, precision);
  values_.head(rank_) *= scale_;
}

// The vectors are found from the tridiagonal form by inverse iteration, only those that are kept; where rounding
// defeats that, by the QR iteration, which always works and takes several times longer.
void LeadingEigenpairs::compute_all(double p, double precision) {
  const Index n = matrix_.rows();
  const bool small = n < least_order_of_inverse_iteration;
  if (small) {
    solver_.compute(matrix_);
  } else {
    tridiagonal_.compute(matrix_);
    diagonal_ = tridiagonal_.diagonal();
    subdiagonal_ = tridiagonal_.subdiagonal();
    solver_.compute_values(diagonal_, subdiagonal_);
  }
  values_ = solver_.values().reverse();
  const double zero = static_cast<double>(n) * 2.0 * precision * values_(0);
  values_ = (values_.array() > zero).select(values_, 0.0);
  rank_ = kept_rank(values_, values_.sum(), p);
  if (!small) {
    if (inverse_iteration(diagonal_, subdiagonal_, values(), vectors_)) {
      tridiagonal_.apply_q(vectors_);
      return;
    }
    solver_.compute(matrix_);
  }
  vectors_ = solver_.vectors().rightCols(rank_).rowwise().reverse();
}

// Block Krylov method with full orthogonalisation: the basis Q spans the powers of S times a random block, and the
// eigenvectors of Q' S Q tell those of S (Rayleigh and Ritz). Ritz values are never above the eigenvalues, so a sum of
// them that is large enough proves that the rank is.
bool LeadingEigenpairs::compute_few(double p, double tolerance, Checkpoint& checkpoint) {
  const Index n = matrix_.rows();
  const Index most = n / order_per_basis / krylov_block * krylov_block;
  basis_.resize(n, most + krylov_block);
  projected_.resize(most, most);
  start_basis();
  Index next_check = 2 * krylov_block;
  for (Index m = krylov_block; m <= most; m += krylov_block) {
    checkpoint();
    extend_basis(m);
    if (m >= next_check || upper_.norm() <= tolerance) {
      const Verdict verdict = judge(m, most, p, tolerance);
      if (verdict == Verdict::done) return verified(m, tolerance);
      if (verdict == Verdict::hopeless) return false;
      next_check = m + std::max(krylov_block, m / 4);
    }
    basis_.middleCols(m, krylov_block) = next_;
  }
  return false;
}

/// The first block is random, but the same for all matrices of this order.
void LeadingEigenpairs::start_basis() {
  next_.resize(matrix_.rows(), krylov_block);
  fill_at_random(next_.reshaped());
  orthonormalise();
  basis_.leftCols(krylov_block) = next_;
}

/// From m basis columns: adds the last block's rows of Q' S Q and makes the block that follows.
void LeadingEigenpairs::extend_basis(Index m) {
  multiply(matrix_, basis_.middleCols(m - krylov_block, krylov_block), next_);
  orthogonalise(m);
  projected_.block(m - krylov_block, 0, krylov_block, m) = weights_.transpose();
  orthonormalise();
  upper_ = triangle_;
  // Rounding leaves traces of Q in a block that was nearly within its span; directions that came from nothing but
  // rounding take several rounds.
  constexpr int most_rounds = 4;
  for (int round = 0; round < most_rounds; ++round) {
    orthogonalise(m);
    orthonormalise();
    upper_ = product<Columns>(triangle_, upper_);
    if (triangle_.diagonal().cwiseAbs().minCoeff() > 0.9) break;
  }
}

/// next_ -= Q weights_ with weights_ = Q' next_.
void LeadingEigenpairs::orthogonalise(Index m) {
  multiply(basis_.leftCols(m).transpose(), next_, weights_);
  add_product(basis_.leftCols(m), weights_, next_, -1.0);
}

/// next_ = (orthonormal columns) triangle_.
void LeadingEigenpairs::orthonormalise() {
  if (!orthonormalise_by_cholesky(next_, triangle_)) orthonormalise_by_reflections(next_, triangle_);
}

/// Looks at the Ritz values of m columns: whether the kept ones, and what the next one could become, are settled.
LeadingEigenpairs::Verdict LeadingEigenpairs::judge(Index m, Index most, double p, double tolerance) {
  solver_.compute(projected_.topLeftCorner(m, m));
  values_ = solver_.values().reverse().cwiseMax(0.0);
  const double missing = p * total_ * (1.0 - 1e-12) - values_.sum();
  if (missing > 0.0) {
    const auto left = static_cast<double>(std::max<Index>(0, most / basis_per_vector - m));
    return m >= least_basis && left * values_(m / 2) < missing ? Verdict::hopeless : Verdict::go_on;
  }
  rank_ = kept_rank(values_, total_, p);
  if (rank_ + 1 >= m) return Verdict::go_on;

  Index cluster = 1;
  for (Index j = 1; j < rank_; ++j) {
    cluster = values_(j - 1) - values_(j) <= cluster_width * values_(j) ? cluster + 1 : 1;
    if (cluster >= krylov_block) return Verdict::hopeless;
  }
  const auto last = product<Columns>(upper_, solver_.vectors().bottomRightCorner(krylov_block, rank_ + 1));
  const Vector residuals = last.colwise().norm().reverse();
  const double limit = tolerance * values_(0);
  const bool apart = values_(rank_) + residuals(rank_) < values_(rank_ - 1) * (1.0 - 1e-10);
  const bool settled = residuals.head(rank_).maxCoeff() <= limit && (apart || residuals(rank_) <= limit);
  return settled ? Verdict::done : Verdict::go_on;
}

/// Forms the eigenvectors and measures what they are worth, whatever rounding did to the basis.
bool LeadingEigenpairs::verified(Index m, double tolerance) {
  const Columns ritz = solver_.vectors().rightCols(rank_).rowwise().reverse();
  multiply(basis_.leftCols(m), ritz, vectors_);
  multiply(matrix_, vectors_, weights_);
  weights_ -= vectors_ * values_.head(rank_).asDiagonal();
  const double residual = weights_.colwise().norm().maxCoeff();
  multiply(vectors_.transpose(), vectors_, weights_);
  const double skew = (weights_ - Columns::Identity(rank_, rank_)).cwiseAbs().maxCoeff();
  return residual <= 8.0 * tolerance * values_(0) && skew <= 1e-11;
}

}  // namespace halosvm::linalg
