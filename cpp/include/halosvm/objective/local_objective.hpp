/// \file
/// The objective of examples that are here: examples x targets x weights x loss x spread. Beside what every objective
/// has: Hessians, a certified bound, gradients of blocks of rows, and other objectives made of this one.
#pragma once

#include "halosvm/core/blocks.hpp"
#include "halosvm/gaussians/gaussians.hpp"
#include "halosvm/objective/objective.hpp"
#include "halosvm/objective/targets.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Which classes must have weight among the examples: all, or, in a part of a SummedObjective, only some.
enum class Classes : std::uint8_t { all, some };

/// J of examples in memory; what solvers that read rows ask for.
class LocalObjective final : public Objective {
 public:
  /// \param data the examples. \param targets n_samples codes, and as many offsets and variances, if any.
  /// \param weights n_samples numbers >= 0, or null for equal weights; normalised to sum 1 in here.
  /// \param regularisation lam > 0. \param fit_intercept false keeps b = 0.
  /// \throws std::invalid_argument for a weight or variance that is negative or not finite, an offset that is not
  /// finite, and when a problem has no positive
  /// weight on one of its two sides.
  LocalObjective(Gaussians data, Targets targets, const double* weights, double regularisation,
                 std::shared_ptr<const Loss> loss, bool fit_intercept, Execution execution,
                 Classes classes = Classes::all);

  /// Number of examples, those of the sample if it is one.
  Index n_samples() const { return sample_ ? static_cast<Index>(sample_->size()) : data_.n_samples(); }
  Index n_features() const override { return data_.n_features(); }
  Index n_problems() const override { return targets_.n_problems; }
  double regularisation() const override { return regularisation_; }
  bool fit_intercept() const override { return fit_intercept_; }
  /// The examples.
  const Gaussians& data() const { return data_; }
  /// How passes are run.
  const Execution& execution() const { return execution_; }
  const std::shared_ptr<const Loss>& loss() const override { return loss_; }
  /// False when the loss ignores covariances.
  bool uses_spread() const { return loss_->uses_spread(); }
  /// Whether no example has a spread: the loss ignores covariances, or there are none.
  bool all_certain() const override {
    return !uses_spread() || (targets_.variances == nullptr && data_.covariances().certain());
  }
  /// Also where a tenth of the examples have no spread: of a few that lie all over the data.
  bool has_many_kinks() const override;
  /// The q of the spreads |R'w|_q.
  double spread_norm() const { return all_certain() ? 2.0 : data_.covariances().spread_norm(); }
  /// The rows of the data that hold the examples begin ... begin + count - 1.
  Rows rows(Index begin, Index count) const {
    if (!sample_) return {begin, count};
    return {0, count, sample_->data() + begin};
  }
  /// y_i in problem \p k.
  double sign(Index row, Index k) const { return targets_.sign(row, k); }
  /// The offset of m, of one example and the largest in size.
  double offset(Index row) const {
    return targets_.offsets != nullptr ? targets_.offsets[row] : loss_->traits().margin;
  }
  /// The largest offset in size.
  double largest_offset() const { return largest_offset_; }
  /// What the target's own uncertainty adds to s^2.
  double variance(Index row) const { return targets_.variances != nullptr ? targets_.variances[row] : 0.0; }
  /// Whether the targets are labels alone.
  bool has_plain_targets() const { return targets_.offsets == nullptr && targets_.variances == nullptr; }
  /// Whether targets have errors of their own.
  bool has_variances() const { return targets_.variances != nullptr; }
  double value_at_origin() const override;
  Vector value_at_zero() const override;
  Moments moments() const override;
  const LocalObjective* local() const override { return this; }
  void evaluate(const ConstMatrixRef& W, const ConstVectorRef& b, double floor, Evaluation& out) const override;
  Vector exact_intercept(const ConstMatrixRef& W, const ConstVectorRef& guess, double floor) const override;
  /// c_i, normalised.
  double weight(Index row) const { return weights_ != nullptr ? weights_[row] * weight_scale_ : weight_scale_; }

  /// Value and gradient in one pass over the data (spec A.3). \param W n_problems x n_features. \param b n_problems.
  void value_and_gradient(const ConstMatrixRef& W, const ConstVectorRef& b, Evaluation& out) const;

  /// Hessian-vector products (spec A.4, K.0) for directions (V, v0); out.value is not touched.
  void hessian_vector(const ConstMatrixRef& W, const ConstVectorRef& b, const ConstMatrixRef& V,
                      const ConstVectorRef& v0, Evaluation& out) const;

  /// The Hessian of the only problem at (W, b) in (w, intercept for means seen from \p centre), of order n_features +
  /// 1; its lower triangle (spec A.4). Defined in hessian.cpp.
  Matrix hessian(const ConstMatrixRef& W, const ConstVectorRef& b, const ConstVectorRef& centre) const;

  /// The b that minimises J for given W (spec A.9); 0 without intercept. Of an interval of minimisers between certain
  /// examples it is the middle. \param guess where to start the search, n_problems. Defined in intercept.cpp.
  Vector exact_intercept(const ConstMatrixRef& W, const ConstVectorRef& guess) const;

  /// The dual bound D <= J* for each problem, from the value and gradient \p at of this objective, or of a \ref
  /// smoothed one, at (W, its exact intercept), with theta = psi_m and phi = psi_s (spec A.8, K.0b):
  ///     D = sum_i c_i [psi_i + theta_i (offset_i - m_i) - phi_i s_i] - |lam w - grad_w J|^2 / (2 lam),
  /// with the gradient for means seen from \p centre: what is left of dJ/db then does no harm far from the origin.
  Vector dual_bound(const ConstMatrixRef& W, const Evaluation& at, const ConstVectorRef& centre) const;

  /// The best dual bound at W; where the loss has kinks, of the spread floors 0.1, 0.01, 0.001 and 0.0001 (spec A.7).
  /// \param b where the searches for the exact intercept start.
  Vector lower_bound(const ConstMatrixRef& W, const ConstVectorRef& b) const;

  /// Problem \p k alone.
  LocalObjective only(Index k) const;

  /// The objective of the listed rows of the data alone, with their weights normalised anew. On both sides of each
  /// problem there must be some weight.
  LocalObjective sampled(std::vector<Index> rows) const;

  /// The same problem for other examples, as many, maybe with other features.
  LocalObjective on(Gaussians data) const;

  /// The same objective with another loss.
  LocalObjective with_loss(std::shared_ptr<const Loss> loss) const {
    LocalObjective other = *this;
    other.loss_ = std::move(loss);
    return other;
  }

  /// The same objective with \p factor * s in place of s. For a factor below 1 it is nowhere larger.
  LocalObjective with_spreads_times(double factor) const;

  /// The same objective with sqrt(s^2 + floor^2) in place of s: smooth, and larger by at most floor / sqrt(2 pi). A
  /// loss without kinks is smooth as it is.
  LocalObjective smoothed(double floor) const;

  /// Memory for the passes over one block; made once for each thread.
  class Workspace {
   public:
    /// For blocks of up to \p rows rows of \p n_problems problems.
    Workspace(const LocalObjective& objective, Index rows, Index n_problems);

   private:
    friend class LocalObjective;
    Matrix m_, s_, value_, slope_m_, slope_s2_, sign_;
    Matrix along_m_, along_s_, second_;  ///< changes of m and s s, and second derivatives; of Hessian products alone
    Vector weight_;
    Vector unscaled_;
    std::vector<double> means_, covariances_, kept_;
  };

  /// Adds scale * sum over the block of c_i psi and its gradient, without the regulariser, for problems
  /// first ... first + W.rows() - 1. Allocates nothing.
  void add_block(const Rows& rows, Index first, const ConstMatrixRef& W, const ConstVectorRef& b, double scale,
                 Workspace& work, Evaluation& sum) const {
    add_block(rows, first, W, b, scale, scale / total_, work, sum);
  }

 private:
  class Scores;
  struct Curvature;
  struct PassMemory;
  void curvature(const Rows& some, const ConstMatrixRef& W, const ConstVectorRef& b, const ConstVectorRef& centre,
                 Curvature& memory) const;
  /// Fills work.m_ and work.s_ for a block.
  void margins(const Rows& rows, Index first, const ConstMatrixRef& W, const ConstVectorRef& b, Workspace& work) const;
  /// The same with the value as \p value_scale times the sum of unscaled weights times psi.
  void add_block(const Rows& rows, Index first, const ConstMatrixRef& W, const ConstVectorRef& b, double scale,
                 double value_scale, Workspace& work, Evaluation& sum) const;
  /// Whether the dual bound is margin times sum c theta: nothing is to be added up for it.
  bool has_plain_dual() const { return loss_->traits().has_dual() && has_plain_targets(); }
  /// Checks offsets and variances.
  void read_offsets();
  /// Adds to the parts of a dual bound for one problem.
  void add_dual(const Rows& rows, Index k, const Workspace& work, Evaluation& sum) const;
  /// Runs body(rows, workspace, partial sums) over all blocks and adds the partial sums in the order of the rows.
  template <class Body>
  void reduce(Evaluation& sum, const Body& body) const;
  /// c_i times the total, exactly the given weight but for a power of two.
  double unscaled_weight(Index row) const { return weights_ != nullptr ? weights_[row] * weight_unit_ : weight_unit_; }

  Gaussians data_;
  Targets targets_;
  const double* weights_;
  double weight_scale_ = 1.0;
  double weight_unit_ = 1.0;  ///< a power of two that keeps sums of weights in range
  double largest_offset_ = 1.0;
  double total_ = 1.0;  ///< sum of the unscaled weights: a sum divided by it is exactly 1 where all losses are
  double regularisation_;
  std::shared_ptr<const Loss> loss_;
  bool fit_intercept_;
  double floor_ = 0.0;
  std::shared_ptr<const std::vector<Index>> sample_;  ///< rows of the examples, or null for all
  Execution execution_;
  std::shared_ptr<Kept<PassMemory>> passes_;  ///< of this number of problems and these covariances
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
