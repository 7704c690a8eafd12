#include "rule.hpp"

#include "linalg/cholesky.hpp"

#include <cmath>

namespace halosvm::kernels {
namespace {

/// Full covariances of one side at least: a Cholesky factorisation of I + S_i + S_j for each pair, or, when the other
/// side is certain, one of I + S_i for each example.
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
        factor_one(x, i);
        differences_ = y.mean.rowwise() - x.mean.row(i);
        out.row(i) = exponents();
      }
    } else if (x_certain_) {
      for (Index j = 0; j < y.count; ++j) {
        checkpoint();
        factor_one(y, j);
        differences_ = x.mean.topRows(x.count).rowwise() - y.mean.row(j);
        out.col(j) = exponents().transpose();
      }
    } else {
      for (Index i = 0; i < x.count; ++i) {
        for (Index j = 0; j < y.count; ++j) {
          checkpoint();
          total_.setIdentity();
          add(x, i);
          add(y, j);
          factor();
          differences_ = x.mean.row(i) - y.mean.row(j);
          out(i, j) = exponents()(0);
        }
      }
    }
  }

 private:
  void add(const Block& block, Index i) {
    const Index d = block.mean.cols();
    if (block.matrix.rows() > 0) total_ += block.matrix.middleRows(i * d, d);
    if (block.uniform()) {
      total_.diagonal().array() += block.variance(i, 0);
    } else {
      total_.diagonal() += block.variance.row(i).transpose();
    }
    for (Index a = 0; a < block.rank; ++a) {
      total_.selfadjointView<Eigen::Lower>().rankUpdate(block.factor.row(a * block.mean.rows() + i).transpose());
    }
  }

  void factor_one(const Block& block, Index i) {
    total_.setIdentity();
    add(block, i);
    factor();
  }

  /// Only the lower triangle is read. Eigenvalues are 1 and above, apart from rounding, so that it cannot fail.
  void factor() {
    linalg::cholesky(total_);
    log_determinant_ = linalg::log_determinant(total_);
  }

  /// 1/2 (log determinant + |C^-1 d|^2) for each of the differences, as a row.
  Eigen::RowVectorXd exponents() {
    solved_ = differences_.transpose();
    linalg::solve_lower(total_, solved_);
    return 0.5 * (solved_.colwise().squaredNorm().array() + log_determinant_);
  }

  bool x_certain_;
  bool y_certain_;
  double log_determinant_ = 0.0;
  Eigen::MatrixXd total_;
  Matrix differences_;
  Eigen::MatrixXd solved_;
};

}  // namespace

std::unique_ptr<PairRule> make_dense_rule(const Side& x, const Side& y) {
  return std::make_unique<DenseRule>(x.certain(), y.certain());
}

}  // namespace halosvm::kernels
