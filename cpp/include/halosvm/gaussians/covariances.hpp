/// \file
/// Covariances of a batch of examples. A kind is only a way to compute S w and w' S w; it knows nothing of losses.
///
/// All kinds work on blocks of rows and on several weight vectors at once (the rows of a matrix: one-vs-rest problems).
/// Nothing is ever expanded to a larger kind. A new kind is one class in covariances/ and whoever constructs it.
#pragma once

#include "halosvm/core/check.hpp"
#include "halosvm/core/parallel.hpp"
#include "halosvm/gaussians/array_view.hpp"
#include "halosvm/core/types.hpp"

#include <memory>
#include <string>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// The largest block of work a pass asks for; sizes scratch memory.
struct BlockShape {
  Index rows;      ///< of a block
  Index problems;  ///< weight vectors at once
};

/// Factors F_i of covariances S_i = F_i F_i', each n_features x r_i. Vectors of r_i numbers stand one after another in
/// the order of the rows: those of row i begin at first_column(i).
class Factors {
 public:
  virtual ~Factors() = default;

  /// r_i, and r_0 + ... + r_{i - 1}.
  virtual Index rank(Index row) const = 0;
  /// The sum of the ranks of earlier rows.
  virtual Index first_column(Index row) const = 0;

  /// p_i = F_i' w for consecutive rows; p: the vectors of these rows.
  virtual void project(const Rows& rows, const ConstVectorRef& w, VectorRef p, double* scratch) const = 0;

  /// out(i, :) = F_i v_i for consecutive rows; out: rows.count x n_features.
  virtual void combine(const Rows& rows, const ConstVectorRef& v, MatrixRef out, double* scratch) const = 0;

  /// sum += sum_i a(i) F_i v_i over consecutive rows; sum: n_features. Rows with a(i) = 0 cost nothing.
  virtual void add_combined(const Rows& rows, const ConstVectorRef& a, const ConstVectorRef& v, VectorRef sum,
                            double* scratch) const = 0;

  /// sum += sum_i F_i diag(t_i) F_i' over consecutive rows; t: the vectors of these rows, sum: n_features x n_features,
  /// of which at least the lower triangle is right.
  virtual void add_squares(const Rows& rows, const ConstVectorRef& t, MatrixRef sum, double* scratch) const = 0;
};

/// r_0 + ... + r_{n_rows - 1}; n_rows > 0.
inline Index total_rank(const Factors& factors, Index n_rows) {
  return factors.first_column(n_rows - 1) + factors.rank(n_rows - 1);
}

/// A read-only view of n_samples covariance matrices of order n_features, all of one kind. Operations on blocks are the
/// inner loops of everything: sizes and numbers are the caller's to check.
class Covariances {
 public:
  /// For the kinds: what all of them have.
  Covariances(Index n_samples, Index n_features) : n_samples_(n_samples), n_features_(n_features) {
    check::require(n_samples >= 0 && n_features >= 0, "covariances", "have a negative number of rows or columns");
  }
  virtual ~Covariances() = default;
  Covariances(const Covariances&) = delete;
  Covariances& operator=(const Covariances&) = delete;

  /// Number of examples.
  Index n_samples() const { return n_samples_; }
  /// Order of the matrices.
  Index n_features() const { return n_features_; }

  /// "zero", "isotropic", "sparse_diagonal", "diagonal", "low_rank", "full" or "columns".
  virtual const char* kind() const = 0;

  /// The q of the spread s_i = |F_i'w|_q. Where it is not 2, S_i w below stands for s_i times the gradient of s_i, so
  /// that w' S_i w is s_i^2 still; see in_norm().
  virtual double spread_norm() const { return 2.0; }

  /// Whether every S_i is known to be 0, so that nothing needs to be read.
  virtual bool certain() const = 0;

  /// Whether w' S w is summed from terms that may cancel, as those of whole matrices do.
  virtual bool cancels() const { return false; }

  /// Bytes stored for one example, rounded up, for choosing block sizes.
  virtual Index row_bytes() const = 0;

  /// Number of doubles of scratch memory the operations below need for blocks up to \p shape.
  virtual Index scratch_size(const BlockShape& shape) const = 0;

  /// out(k, i) = w_k' S_i v_k for the rows i of the block; W, V: problems x n_features, out: problems x rows.count.
  virtual void bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                        double* scratch) const = 0;

  /// sum(k, :) += sum_i a(k, i) S_i w_k; a: problems x rows.count, W and sum: problems x n_features.
  virtual void add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W, MatrixRef sum,
                                     double* scratch) const = 0;

  // NOLINTBEGIN(performance-unnecessary-value-param): what they refer to is written to
  /// out(k, i) = w_k' S_i w_k, and what a gradient needs once more: a pass computes the products of a block once.
  /// \param kept kept_size numbers, for \ref add_kept_products with the same rows and W.
  virtual void squares(const Rows& rows, const ConstMatrixRef& W, MatrixRef out, double* kept, double* scratch) const {
    static_cast<void>(kept);
    bilinear(rows, W, W, out, scratch);
  }
  /// Number of doubles that \ref squares keeps for a block up to \p shape.
  virtual Index kept_size(const BlockShape& shape) const {
    static_cast<void>(shape);
    return 0;
  }

  /// \ref add_weighted_products after \ref squares.
  virtual void add_kept_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W, const double* kept,
                                 MatrixRef sum, double* scratch) const {
    static_cast<void>(kept);
    add_weighted_products(rows, a, W, sum, scratch);
  }
  // NOLINTEND(performance-unnecessary-value-param)

  /// out(i, :) = S_i w for one w; out: rows.count x n_features.
  virtual void products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const = 0;

  /// sum += sum_i a(i) S_i; a: rows.count, sum: n_features x n_features, of which at least the lower triangle is right,
  /// and both where w'S w \ref cancels.
  virtual void add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum,
                                     double* scratch) const = 0;

  /// sum += sum_i a(i) diag(S_i); a: rows.count, sum: n_features.
  virtual void add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum,
                                      double* scratch) const = 0;

  /// The factors whose products these covariances are, or null. Scratch memory as for the operations above.
  virtual const Factors* factors() const { return nullptr; }

  /// Resizes \p out to R with S_row = R R', in which small features are not lost beside large ones: the factors, and a
  /// column for each independent error.
  virtual void root(Index row, Matrix& out) const;

  /// The same covariances in any orthonormal basis of \p n_features vectors, for kinds that are alike in every
  /// direction; else null.
  virtual std::shared_ptr<const Covariances> in_basis(Index n_features) const {
    static_cast<void>(n_features);
    return nullptr;
  }

  /// Appends the features in which examples may be uncertain, some more than once. \returns false where these may be
  /// all.
  virtual bool add_support(const Rows& rows, std::vector<Index>& columns) const {
    static_cast<void>(rows);
    static_cast<void>(columns);
    return certain();
  }

  /// Asks the processor to bring an example's covariance into its cache.
  virtual void prefetch(Index row) const = 0;

  /// Throws std::invalid_argument naming \p argument, the row and the value unless every matrix is finite, of moderate
  /// size and positive semi-definite (beyond rounding).
  virtual void check(const std::string& argument, const Execution& execution) const = 0;

  /// \ref check, but once however often it is asked for: what takes covariances from outside asks.
  void check_once(const std::string& argument, const Execution& execution) const {
    once_([&] { check(argument, execution); });
  }
  /// Takes the numbers for checked: the caller vouches for them.
  void assume_checked() const { once_.assume(); }

 private:
  Index n_samples_;
  Index n_features_;
  check::Once once_;
};

/// Kinds by what they are, for those that know no classes. All S_i = 0; others times a factor; F_i F_i' with the
/// factors one after another, F_i from column offsets[i] to offsets[i + 1], as \ref LowRankCovariances has them.
std::shared_ptr<const Covariances> no_covariances(Index n_samples, Index n_features);
/// The covariances factor S_i.
std::shared_ptr<const Covariances> scaled_covariances(std::shared_ptr<const Covariances> base, double factor);
/// The sizes of errors F_i u with |u|_p <= 1, p = \p norm: spreads |F_i'w|_q with 1/p + 1/q = 1 (spec G.1).
/// \throws std::invalid_argument for a norm below 1, and for covariances without factors unless the norm is 2.
std::shared_ptr<const Covariances> in_norm(std::shared_ptr<const Covariances> base, double norm);
/// The covariances F_i F_i'; the arrays must outlive them.
std::shared_ptr<const Covariances> low_rank_covariances(const ArrayView& factors, const Index* offsets, Index n_samples,
                                                        Index n_features);

}  // namespace halosvm
HALOSVM_PUBLIC_END
