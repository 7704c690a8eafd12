// Kernels between Gaussians of which one has a full matrix: a factorisation for each pair.

#include "kernel/expansion/parts.hpp"
#include "linalg/pivoted_cholesky.hpp"
#include "kernel/rule.hpp"

#include "linalg/cholesky.hpp"
#include "linalg/qr.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace halosvm::kernels {
namespace {

struct Example {
  const Block* block = nullptr;
  Index row = 0;
};

/// 1/2 (log |A + F F'| + d'(A + F F')^-1 d) where A + F F' as one matrix would lose A, or one of two examples the
/// other: everything stays in factors, which are rotated to triangles. Two examples may be wide along the same
/// direction, and their difference there is no more than rounding, which is set to 0.
class FactoredPair {
 public:
  void start(Index d) {
    a_.setOnes(d);
    F_.resize(d, 0);
  }

  void add(const Block& block, Index row) {
    const Index d = block.mean.cols();
    if (block.uniform()) {
      a_.array() += block.variance(row, 0);
    } else {
      a_ += block.variance.row(row).transpose();
    }
    if (block.matrix.rows() > 0) append(linalg::pivoted_cholesky(block.matrix.middleRows(row * d, d)));
    for (Index a = 0; a < block.rank; ++a) append(block.factor.row(a * block.mean.rows() + row).transpose());
  }

  void finish() {
    const Index d = F_.rows();
    const Index columns = F_.cols();
    if (columns == 0) return;  // covariances that overflow have no factors
    root_ = a_.cwiseSqrt();
    F_.array().colwise() /= root_.array();
    sort_rows();
    for (Index k = 0; k < d; ++k) sorted_.row(k) = F_.row(order_[static_cast<std::size_t>(k)]);
    basis_ = linalg::pivoted_qr(sorted_);
    const Index rank = std::min(d, columns);
    stacked_.setZero(rank + columns, columns);
    stacked_.topRows(rank) = sorted_.topRows(rank).template triangularView<Eigen::Upper>();
    drop_rounding(rank);
    stacked_.bottomRows(columns).setIdentity();
    triangle_ = linalg::qr(stacked_);
    log_determinant_ = a_.array().log().sum() + 2.0 * stacked_.diagonal().head(columns).array().abs().log().sum();
  }

  /// For each row of \p differences.
  Eigen::RowVectorXd exponents(const Matrix& differences) {
    if (F_.cols() == 0) return Eigen::RowVectorXd::Constant(differences.rows(), infinity);
    const Index rank = std::min(F_.rows(), F_.cols());
    rotated_.resize(F_.rows(), differences.rows());
    for (Index k = 0; k < F_.rows(); ++k) {
      const Index feature = order_[static_cast<std::size_t>(k)];
      rotated_.row(k) = differences.col(feature).transpose() / root_(feature);
    }
    linalg::apply_q_transposed(sorted_, basis_, rotated_);
    extended_.setZero(rank + F_.cols(), differences.rows());
    extended_.topRows(rank) = rotated_.topRows(rank);
    linalg::apply_q_transposed(stacked_, triangle_, extended_);
    const auto outside = rotated_.bottomRows(F_.rows() - rank).colwise().squaredNorm();
    return 0.5 * (outside + extended_.bottomRows(rank).colwise().squaredNorm()).array() + 0.5 * log_determinant_;
  }

 private:
  void append(const Eigen::Ref<const Eigen::MatrixXd>& columns) {
    F_.conservativeResize(Eigen::NoChange, F_.cols() + columns.cols());
    F_.rightCols(columns.cols()) = columns;
  }

  /// In descending size, without which reflections would lose the small rows.
  void sort_rows() {
    const Vector sizes = F_.cwiseAbs().rowwise().maxCoeff().unaryExpr(&not_negative);  // without NaN, for the order
    order_.resize(static_cast<std::size_t>(F_.rows()));
    std::iota(order_.begin(), order_.end(), Index{0});
    std::sort(order_.begin(), order_.end(),
              [&](Index k, Index l) { return sizes(k) > sizes(l) || (sizes(k) == sizes(l) && k < l); });
    sorted_.resize(F_.rows(), F_.cols());
  }

  /// Sets to 0 what the rotation left of columns in directions that they do not have.
  void drop_rounding(Index rank) {
    const double rounding = 8.0 * static_cast<double>(F_.rows()) * std::numeric_limits<double>::epsilon();
    for (Index c = 0; c < stacked_.cols(); ++c) {
      auto column = stacked_.col(c).head(rank);
      const double least = rounding * column.norm();
      Index k = rank;
      while (k > 0 && column.tail(rank - k + 1).norm() <= least) --k;
      column.tail(rank - k).setZero();
    }
  }

  Vector a_;
  Vector root_;
  Eigen::MatrixXd F_;
  std::vector<Index> order_;
  Eigen::MatrixXd sorted_;   ///< the rows in order, then R and the reflections of their QR decomposition
  Vector basis_;             ///< the coefficients of those
  Eigen::MatrixXd stacked_;  ///< R above I, then the same of these rows
  Vector triangle_;
  double log_determinant_ = 0.0;
  Eigen::MatrixXd rotated_;
  Eigen::MatrixXd extended_;
};

/// Full covariances of one side at least: a Cholesky factorisation of I + S_i + S_j for each pair, or, when the other
/// side is certain, one of I + S_i for each example. Where digits cancel in it, the pair is factored with care.
class DenseRule final : public PairRule {
 public:
  DenseRule(bool x_certain, bool y_certain) : x_certain_(x_certain), y_certain_(y_certain) {}
  Index block_rows() const override { return x_certain_ || y_certain_ ? 64 : 16; }

  void fill(const Block& x, const Block& y, MatrixRef out, Checkpoint& checkpoint) override {
    const Index d = x.mean.cols();
    total_.resize(d, d);
    if (y_certain_) {
      for (Index i = 0; i < x.count; ++i) {
        checkpoint();
        factor({&x, i});
        differences_ = y.mean.rowwise() - x.mean.row(i);
        out.row(i) = exponents();
      }
    } else if (x_certain_) {
      for (Index j = 0; j < y.count; ++j) {
        checkpoint();
        factor({&y, j});
        differences_ = x.mean.topRows(x.count).rowwise() - y.mean.row(j);
        out.col(j) = exponents().transpose();
      }
    } else {
      for (Index i = 0; i < x.count; ++i) {
        for (Index j = 0; j < y.count; ++j) {
          checkpoint();
          factor({&x, i}, {&y, j});
          differences_ = x.mean.row(i) - y.mean.row(j);
          out(i, j) = exponents()(0);
        }
      }
    }
  }

 private:
  void add(const Example& one) {
    if (one.block == nullptr) return;
    const Block& block = *one.block;
    const Index d = block.mean.cols();
    if (block.matrix.rows() > 0) total_ += block.matrix.middleRows(one.row * d, d);
    if (block.uniform()) {
      total_.diagonal().array() += block.variance(one.row, 0);
    } else {
      total_.diagonal() += block.variance.row(one.row).transpose();
    }
    for (Index a = 0; a < block.rank; ++a) {
      const Vector column = block.factor.row(a * block.mean.rows() + one.row).transpose();
      total_.noalias() += column * column.transpose();
    }
  }

  /// Only the lower triangle is read.
  void factor(const Example& one, const Example& other = {}) {
    total_.setIdentity();
    add(one);
    add(other);
    diagonal_ = total_.diagonal();
    const bool positive = linalg::cholesky(total_);
    careful_ = !positive || !(total_.diagonal().array().square() >= lost * diagonal_.array()).all();
    if (!careful_) {
      log_determinant_ = linalg::log_determinant(total_);
      return;
    }
    pair_.start(total_.rows());
    for (const Example& example : {one, other}) {
      if (example.block != nullptr) pair_.add(*example.block, example.row);
    }
    pair_.finish();
  }

  /// 1/2 (log determinant + |C^-1 d|^2) for each of the differences, as a row.
  Eigen::RowVectorXd exponents() {
    if (careful_) return pair_.exponents(differences_);
    solved_ = differences_.transpose();
    linalg::solve_lower(total_, solved_);
    return 0.5 * (solved_.colwise().squaredNorm().array() + log_determinant_);
  }

  bool x_certain_;
  bool y_certain_;
  bool careful_ = false;
  double log_determinant_ = 0.0;
  Eigen::MatrixXd total_;
  Vector diagonal_;
  FactoredPair pair_;
  Matrix differences_;
  Eigen::MatrixXd solved_;
};

}  // namespace

std::unique_ptr<PairRule> make_dense_rule(const Side& x, const Side& y) {
  return std::make_unique<DenseRule>(x.certain(), y.certain());
}

}  // namespace halosvm::kernels
