// Moments of pairs of sections where all covariances are diagonal.

#include "kernel/expansion/expansion.hpp"
#include "kernel/lanes.hpp"
#include "linalg/multiply.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::kernels {
namespace {

/// The variances of a row, for each feature.
Vector variances_of(const Block& block, Index row) {
  if (block.uniform()) return Vector::Constant(block.mean.cols(), block.variance(row, 0));
  return block.variance.row(row).transpose();
}

/// log |B| of a diagonal B = I + v, relatively accurate for a small v too.
double log_determinant(const Vector& v) {
  double sum = 0.0;
  for (Index k = 0; k < v.size(); ++k) sum += log_of_one_plus(v(k));
  return sum;
}

/// Where B_j^-1 S B_l^-1 S is a number for each pair, or the same matrix for all pairs, a tile is a matrix product.
class ProductMoments final : public PairMoments {
 public:
  ProductMoments(const Block& z, bool uniform) : z_(z), uniform_(uniform) {}
  Index strip_rows() const override { return 128; }

  void load(const Block& x) override {
    const Index d = z_.mean.cols();
    s_ = variances_of(x, 0);
    a_.resize(z_.count, d);
    exponents_.resize(z_.count);
    own_.resize(z_.count);
    if (!uniform_) set_weights();
    for (Index j = 0; j < z_.count; ++j) {
      auto a = a_.row(j);
      a = x.mean.row(0) - z_.mean.row(j);
      if (uniform_) {
        const double v = s_(0) + z_.variance(j, 0);
        const double squared = a.squaredNorm();
        a /= 1.0 + v;
        own_(j) = squared / (1.0 + v);
        exponents_(j) = 0.5 * (static_cast<double>(d) * log_of_one_plus(v) + own_(j));
      } else {
        const double squared = (a.array().square() * inverse_.transpose().array()).sum();
        own_(j) = (a.array().square() * (inverse_.array() * e_.array()).transpose()).sum();
        a.array() *= inverse_.transpose().array();
        exponents_(j) = 0.5 * (log_determinant_ + squared);
      }
    }
  }

  void fill(const Rows& rows, const Rows& columns, PairTile& out, Checkpoint& checkpoint) override {
    checkpoint();
    rows_ = rows;
    out.row_exponents = exponents_.segment(rows.begin, rows.count);
    out.column_exponents = exponents_.segment(columns.begin, columns.count);
    const auto own = a_.middleRows(rows.begin, rows.count);
    const auto other = a_.middleRows(columns.begin, columns.count);
    weighted_ = own * s_.asDiagonal();
    linalg::multiply(weighted_, other.transpose(), out.first);
    if (uniform_) {
      out.rest.resize(rows.count, columns.count);
      fill_uniform(out, rows, columns);
      return;
    }
    weighted_ *= e_.asDiagonal();
    linalg::multiply(weighted_, other.transpose(), out.rest);
    out.rest.array() += 0.5 * lambda_;
    out.rest.colwise() -= 0.5 * own_.segment(rows.begin, rows.count);
    out.rest.rowwise() -= 0.5 * own_.segment(columns.begin, columns.count).transpose();
  }

  void add_gradients(const Matrix& weights, Matrix& gradients) const override {
    linalg::add_product(weights, a_.middleRows(rows_.begin, rows_.count), gradients);
  }

  double spread(const Vector& g) const override { return s_.dot(g.cwiseAbs2()); }

 private:
  /// For certain Z_j: e = s^2 / (1 + 2 s), and rho = sum_k e_k (d_j a_j + d_l a_l - 2 s a_j a_l)_k.
  void set_weights() {
    inverse_ = (1.0 + s_.array()).inverse();
    e_ = s_.array() * (s_.array() / (1.0 + 2.0 * s_.array()));
    log_determinant_ = log_determinant(s_);
    lambda_ = log_determinant(e_);
  }

  void fill_uniform(PairTile& out, const Rows& rows, const Rows& columns) const {
    const double s = s_(0);
    const auto d = static_cast<double>(a_.cols());
    for (Index i = 0; i < rows.count; ++i) {
      const double A = 1.0 + z_.variance(rows.begin + i, 0);
      const double own = own_(rows.begin + i);
      for (Index j = 0; j < columns.count; ++j) {
        const double B = 1.0 + z_.variance(columns.begin + j, 0);
        const double e = s * (s / (A * B + s * (A + B)));
        const double rho = e * (own + own_(columns.begin + j) - 2.0 * out.first(i, j));
        out.rest(i, j) = 0.5 * (d * log_of_one_plus(e) - rho);
      }
    }
  }

  const Block& z_;
  bool uniform_;
  Rows rows_{0, 0};
  Vector s_;
  Matrix a_;
  Vector own_;  ///< d_j'a_j; for certain Z_j with the weights e
  Vector exponents_;
  Vector inverse_;
  Vector e_;
  double log_determinant_ = 0.0;
  double lambda_ = 0.0;
  Matrix weighted_;
};

/// Diagonal covariances that differ from pair to pair. For each feature, with q = B_j B_l - s^2 and e = s^2 / q,
/// lambda = log(1 + e) and rho = e (d_j a_j + d_l a_l - 2 s a_j a_l); eight pairs are computed side by side.
class LaneMoments final : public PairMoments {
 public:
  explicit LaneMoments(const Block& z) : z_(z) {
    const Index d = z.mean.cols();
    A_.resize(z.mean.rows() / lanes * d, lanes);
    for (Index j = 0; j < z.mean.rows(); ++j) {
      for (Index k = 0; k < d; ++k) at(A_, j, k) = 1.0 + z.variance(j, z.uniform() ? 0 : k);
    }
    a_.resize(A_.rows(), lanes);
    own_.resize(A_.rows(), lanes);
    exponents_.resize(z.mean.rows());
  }
  Index strip_rows() const override { return 64; }

  void load(const Block& x) override {
    const Index d = z_.mean.cols();
    s_ = variances_of(x, 0);
    // Products below 2^1000 of 1 + e, where e < s / 2 because q > 2 s.
    steps_ = std::max<Index>(1, static_cast<Index>(1000.0 / std::log2(2.0 + s_.maxCoeff())));
    for (Index j = 0; j < z_.mean.rows(); ++j) {
      double sum = 0.0;
      for (Index k = 0; k < d; ++k) {
        const double difference = x.mean(0, k) - z_.mean(j, k);
        const double v = (at(A_, j, k) - 1.0) + s_(k);
        at(a_, j, k) = difference / (1.0 + v);
        at(own_, j, k) = difference * at(a_, j, k);
        sum += at(own_, j, k) + log_of_one_plus(v);
      }
      exponents_(j) = 0.5 * sum;
    }
  }

  void fill(const Rows& rows, const Rows& columns, PairTile& out, Checkpoint& checkpoint) override {
    rows_ = rows;
    out.row_exponents = exponents_.segment(rows.begin, rows.count);
    out.column_exponents = exponents_.segment(columns.begin, columns.count);
    first_.resize(rows.count, padded(columns.count));
    rest_.resize(rows.count, padded(columns.count));
    for (Index i = 0; i < rows.count; ++i) {
      checkpoint();
      for (Index j = 0; j < columns.count; j += lanes) pairs(i, rows.begin + i, j, columns.begin + j);
    }
    out.first = first_.leftCols(columns.count);
    out.rest = rest_.leftCols(columns.count);
  }

  void add_gradients(const Matrix& weights, Matrix& gradients) const override {
    for (Index i = 0; i < rows_.count; ++i) {
      for (Index k = 0; k < gradients.cols(); ++k) gradients.col(k) += at(a_, rows_.begin + i, k) * weights.col(i);
    }
  }

  double spread(const Vector& g) const override { return s_.dot(g.cwiseAbs2()); }

 private:
  /// Number k of row j, in panels of eight rows; strips begin with a panel.
  double& at(Matrix& m, Index j, Index k) const { return m(j / lanes * z_.mean.cols() + k, j % lanes); }
  double at(const Matrix& m, Index j, Index k) const { return m(j / lanes * z_.mean.cols() + k, j % lanes); }

  void pairs(Index i, Index row, Index j, Index column) {
    const Index d = z_.mean.cols();
    const double* A = A_.row(column / lanes * d).data();
    const double* a = a_.row(column / lanes * d).data();
    const double* own = own_.row(column / lanes * d).data();
    Pack first = Pack::Zero();
    Pack rho = Pack::Zero();
    Pack product = Pack::Zero();  // less 1, so that small e keep their digits
    Pack lambda = Pack::Zero();
    Index left = steps_;
    for (Index k = 0; k < d; ++k) {
      const double s = s_(k);
      const double B = at(A_, row, k);
      const double weight = s * at(a_, row, k);
      const Pack A_k = halosvm::kernels::load(A + k * lanes);
      const Pack a_k = halosvm::kernels::load(a + k * lanes);
      const Pack e = s * (s / (B * A_k + s * (B + A_k)));
      first += weight * a_k;
      rho += e * (at(own_, row, k) + halosvm::kernels::load(own + k * lanes) - 2.0 * weight * a_k);
      product += e + product * e;
      if (--left == 0) {
        lambda += logs(product);
        product.setZero();
        left = steps_;
      }
    }
    lambda += logs(product);
    Eigen::Map<Pack>(first_.row(i).data() + j) = first;
    Eigen::Map<Pack>(rest_.row(i).data() + j) = 0.5 * (lambda - rho);
  }

  static Pack logs(const Pack& v) {
    Pack out;
    for (Index l = 0; l < lanes; ++l) out[l] = log_of_one_plus(v[l]);
    return out;
  }

  const Block& z_;
  Index steps_ = 1;
  Rows rows_{0, 0};
  Vector s_;
  Matrix A_;    ///< 1 + T_j
  Matrix a_;    ///< a_j
  Matrix own_;  ///< d_j a_j
  Vector exponents_;
  Matrix first_;
  Matrix rest_;
};

}  // namespace

std::unique_ptr<PairMoments> make_diagonal_moments(const Side& x, const Side& z, const Block& all) {
  const bool uniform = x.uniform() && z.uniform();
  if (uniform || z.certain()) return std::make_unique<ProductMoments>(all, uniform);
  return std::make_unique<LaneMoments>(all);
}

}  // namespace halosvm::kernels
