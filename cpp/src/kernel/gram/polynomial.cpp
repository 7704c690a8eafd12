// The expected polynomial kernel, from matrix products.

#include "kernel/lanes.hpp"
#include "kernel/rule.hpp"
#include "linalg/multiply.hpp"

#include <cmath>

namespace halosvm::kernels {
namespace {

using Row = Eigen::RowVectorXd;

/// (x'y + c)^degree with a = x'y + c of the means: a; a^2 + q; a^3 + 3 a q + 6 x'T S y, where
/// q = tr(S T) + x'T x + y'S y. Without covariances, or for degree 1, it is one matrix product.
class PolynomialRule final : public PairRule {
 public:
  PolynomialRule(bool of_means, int degree, double coef0) : of_means_(of_means), degree_(degree), coef0_(coef0) {}
  Index block_rows() const override { return of_means_ ? 192 : 32; }
  bool logarithmic() const override { return false; }

  void fill(const Block& x, const Block& y, MatrixRef out, Checkpoint& checkpoint) override {
    checkpoint();
    linalg::multiply(x.mean.topRows(x.count), y.mean.transpose(), out);
    if (coef0_ != 0.0) out.array() += coef0_;
    if (of_means_) {
      if (degree_ == 2) out = out.array().square();
      if (degree_ == 3) out = out.array().cube();
      return;
    }
    set_diagonals(x, own_diagonals_);
    set_diagonals(y, other_diagonals_);
    for (Index i = 0; i < x.count; ++i) {
      for (Index j = 0; j < y.count; ++j) {
        checkpoint();
        out(i, j) = pair(x, y, i, j, out(i, j));
      }
    }
  }

 private:
  double pair(const Block& x, const Block& y, Index i, Index j, double a) {
    product(y, j, x.mean.row(i), of_x_);
    product(x, i, y.mean.row(j), of_y_);
    const double q = trace_of_product(x, y, i, j) + of_x_.dot(x.mean.row(i)) + of_y_.dot(y.mean.row(j));
    return degree_ == 2 ? a * a + q : a * a * a + 3.0 * a * q + 6.0 * of_x_.dot(of_y_);
  }

  /// out = S w.
  static void product(const Block& block, Index i, const Row& w, Row& out) {
    if (block.uniform()) {
      out = block.variance(i, 0) * w;
    } else {
      out = block.variance.row(i).cwiseProduct(w);
    }
    for (Index a = 0; a < block.rank; ++a) {
      const auto column = block.factor.row(a * block.mean.rows() + i);
      out += column.dot(w) * column;
    }
    if (block.matrix.rows() > 0) {
      linalg::add_product(w, block.matrix.middleRows(i * w.size(), w.size()), out);
    }
  }

  /// The diagonals of all of S, which a diagonal part of the other covariance meets.
  static void set_diagonals(const Block& block, Matrix& out) {
    const Index d = block.mean.cols();
    out.resize(block.count, d);
    for (Index i = 0; i < block.count; ++i) {
      if (block.uniform()) {
        out.row(i).setConstant(block.variance(i, 0));
      } else {
        out.row(i) = block.variance.row(i);
      }
      for (Index a = 0; a < block.rank; ++a) out.row(i) += block.factor.row(a * block.mean.rows() + i).cwiseAbs2();
      if (block.matrix.rows() > 0) out.row(i) += block.matrix.middleRows(i * d, d).diagonal().transpose();
    }
  }

  double trace_of_product(const Block& x, const Block& y, Index i, Index j) {
    double sum =
        x.uniform() ? x.variance(i, 0) * other_diagonals_.row(j).sum() : x.variance.row(i).dot(other_diagonals_.row(j));
    for (Index a = 0; a < x.rank; ++a) {
      const auto column = x.factor.row(a * x.mean.rows() + i);
      product(y, j, column, product_);
      sum += product_.dot(column);
    }
    return x.matrix.rows() > 0 ? sum + trace_with_matrix(x, y, i, j) : sum;
  }

  static double trace_with_matrix(const Block& x, const Block& y, Index i, Index j) {
    const Index d = x.mean.cols();
    const auto M = x.matrix.middleRows(i * d, d);
    double sum = y.uniform() ? y.variance(j, 0) * M.trace() : M.diagonal().dot(y.variance.row(j));
    for (Index a = 0; a < y.rank; ++a) {
      const auto column = y.factor.row(a * y.mean.rows() + j);
      sum += column.dot(column * M);
    }
    if (y.matrix.rows() > 0) sum += M.cwiseProduct(y.matrix.middleRows(j * d, d)).sum();
    return sum;
  }

  bool of_means_;
  int degree_;
  double coef0_;
  Matrix own_diagonals_;
  Matrix other_diagonals_;
  Row of_x_;
  Row of_y_;
  Row product_;
};

}  // namespace

std::unique_ptr<PairRule> make_polynomial_rule(const Side& x, const Side& y, int degree, double coef0) {
  return std::make_unique<PolynomialRule>(degree == 1 || (x.certain() && y.certain()), degree, coef0);
}

}  // namespace halosvm::kernels
