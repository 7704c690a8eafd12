// Moments of pairs of sections in the latent coordinates of a full covariance.

#include "kernel/expansion/expansion.hpp"
#include "kernel/expansion/parts.hpp"
#include "linalg/pivoted_cholesky.hpp"

#include "linalg/cholesky.hpp"
#include "linalg/multiply.hpp"
#include "linalg/qr.hpp"

#include <vector>

namespace halosvm::kernels {
namespace {

/// Replaces a matrix by its Cholesky factor; false where digits cancel in that.
bool factored(MatrixXd& matrix) {
  const Vector diagonal = matrix.diagonal();
  const bool positive = linalg::cholesky(matrix);
  return positive && (matrix.diagonal().array().square() >= lost * diagonal.array()).all();
}

/// One Z_j as seen through x = mu + R xi with S = R R': h_j is a Gaussian bump in the latent xi, of precision M = R'P R
/// and slope v = R'P d, where P = (I + T_j)^-1.
struct Bump {
  Parts parts;
  MatrixXd M;
  MatrixXd H;                    ///< M (I + M)^-1
  MatrixXd precision;            ///< Cholesky factor of N = I + M
  Vector p;                      ///< N^-1 v, which is R'a
  Vector a;                      ///< B^-1 d
  double log_determinant = 0.0;  ///< of N
  double exponent = 0.0;
  MatrixXd own;         ///< Cholesky factor of I + T_j, if T_j is a matrix
  MatrixXd orthogonal;  ///< QR decomposition of [A^-1/2 F; I], if it has a factor
  Vector coefficients;  ///< of its reflections
  Vector root;          ///< A^1/2

  /// Whether it keeps its digits.
  bool turn(const Vector& mean, const MatrixXd& R) {
    const Vector d = mean - parts.mean;
    MatrixXd rooted(R.rows(), R.cols() + 1);  // V'[R d]
    rooted.leftCols(R.cols()) = R;
    rooted.rightCols(1) = d;
    const double log_own = apply_root(rooted);
    Vector left = rooted.rightCols(1);
    double quadratic = left.squaredNorm();
    log_determinant = 0.0;
    bool kept = true;
    if (R.cols() > 0) {
      const auto VR = rooted.leftCols(R.cols());
      linalg::multiply(VR.transpose(), VR, M);
      precision = MatrixXd::Identity(R.cols(), R.cols()) + M;
      kept = factored(precision);
      log_determinant = linalg::log_determinant(precision);
      H = M;
      linalg::cholesky_solve(precision, H);
      const auto v = linalg::product<Vector>(VR.transpose(), left);
      p = v;
      linalg::cholesky_solve(precision, p);
      quadratic -= v.dot(p);
      linalg::add_product(VR, p, left, -1.0);
    }
    a = apply_root_transposed(left);
    exponent = 0.5 * (log_own + log_determinant + not_negative(quadratic));
    return kept;
  }

 private:
  /// Replaces X by V'X for a V with P = V V' and returns log |I + T_j|. Of a factor, V consists of the columns of Q
  /// that complete those in which [A^-1/2 F; I] lies, so that P is no difference, however wide the factor.
  double apply_root(MatrixXd& X) {
    if (parts.matrix.size() > 0) {
      own = MatrixXd::Identity(X.rows(), X.rows()) + parts.matrix;
      if (factored(own)) {
        linalg::solve_lower(own, X);
        return linalg::log_determinant(own);
      }
      parts.factor_matrix();
    }
    root = (1.0 + parts.v.array()).sqrt();
    const double logs = parts.v.array().log1p().sum();
    X.array().colwise() /= root.array();
    const Index rank = parts.F.cols();
    if (rank == 0) return logs;
    orthogonal.resize(X.rows() + rank, rank);
    orthogonal.bottomRows(rank).setIdentity();
    orthogonal.topRows(X.rows()) = root.cwiseInverse().asDiagonal() * parts.F;
    coefficients = linalg::qr(orthogonal);
    MatrixXd extended = MatrixXd::Zero(X.rows() + rank, X.cols());
    extended.topRows(X.rows()) = X;
    linalg::apply_q_transposed(orthogonal, coefficients, extended);
    X = extended.bottomRows(X.rows());
    return logs + 2.0 * orthogonal.diagonal().array().abs().log().sum();
  }

  /// V u for the same V.
  Vector apply_root_transposed(const Vector& u) const {
    Vector out = u;
    if (parts.matrix.size() > 0) {
      linalg::solve_lower_transposed(own, out);
      return out;
    }
    if (parts.F.cols() > 0) {
      Vector extended = Vector::Zero(u.size() + parts.F.cols());
      extended.tail(u.size()) = u;
      linalg::apply_q(orthogonal, coefficients, extended);
      out = extended.head(u.size());
    }
    return out.cwiseQuotient(root);
  }
};

/// All pairs in the r latent variables of x, whatever the Z_j are:
///
///     first = p_j'p_l,    lambda = -log |I - H_j H_l| = log |N_j| + log |N_l| - log |N|,    N = I + M_j + M_l,
///     rho = p_j'M_l p_j + p_l'M_j p_l - c'N^-1 c,    c = M_l p_j + M_j p_l.
///
/// Tiles where digits cancel, because x and a Z_j are both wide, are left to \ref make_factor_moments.
class LatentMoments final : public PairMoments {
 public:
  explicit LatentMoments(const Side& z) : side_(z), careful_(make_factor_moments(z)) {}
  Index strip_rows() const override { return 16; }

  void load(const Block& x) override {
    careful_->load(x);
    x_.load(x, 0);
    x_.factor_matrix();
    const bool diagonal = x_.v.maxCoeff() > 0.0;
    const Index d = x_.mean.size();
    R_.setZero(d, (diagonal ? d : 0) + x_.F.cols());
    if (diagonal) R_.leftCols(d).diagonal() = x_.v.cwiseSqrt();
    R_.rightCols(x_.F.cols()) = x_.F;
  }

  void fill(const Rows& rows, const Rows& columns, PairTile& out, Checkpoint& checkpoint) override {
    kept_ = true;
    const bool on_diagonal = rows.begin == columns.begin;
    turn(on_diagonal ? rows : columns, on_diagonal ? rows_ : columns_, checkpoint);
    const std::vector<Bump>& others = on_diagonal ? rows_ : columns_;
    set_exponents(rows_, rows.count, out.row_exponents);
    set_exponents(others, columns.count, out.column_exponents);
    out.first.setZero(rows.count, columns.count);
    out.rest.setZero(rows.count, columns.count);
    for (Index i = 0; i < rows.count && R_.cols() > 0; ++i) {
      for (Index j = 0; j < columns.count; ++j) {
        checkpoint();
        pair(rows_[static_cast<std::size_t>(i)], others[static_cast<std::size_t>(j)], out.first(i, j), out.rest(i, j));
      }
    }
    if (!kept_) careful_->fill(rows, columns, out, checkpoint);
  }

  void add_gradients(const Matrix& weights, Matrix& gradients) const override {
    if (!kept_) {
      careful_->add_gradients(weights, gradients);
      return;
    }
    for (Index i = 0; i < weights.cols(); ++i) {
      gradients.noalias() += weights.col(i) * rows_[static_cast<std::size_t>(i)].a.transpose();
    }
  }

  double spread(const Vector& g) const override { return linalg::product<Vector>(R_.transpose(), g).squaredNorm(); }

 private:
  void turn(const Rows& strip, std::vector<Bump>& bumps, Checkpoint& checkpoint) {
    block_.load(side_, strip.begin, strip.count);
    bumps.resize(static_cast<std::size_t>(strip.count));
    for (Index i = 0; i < strip.count; ++i) {
      checkpoint();
      Bump& bump = bumps[static_cast<std::size_t>(i)];
      bump.parts.load(block_, i);
      kept_ = bump.turn(x_.mean, R_) && kept_;
    }
  }

  static void set_exponents(const std::vector<Bump>& bumps, Index count, Vector& out) {
    out.resize(count);
    for (Index i = 0; i < count; ++i) out(i) = bumps[static_cast<std::size_t>(i)].exponent;
  }

  void pair(const Bump& j, const Bump& l, double& first, double& rest) {
    first = j.p.dot(l.p);
    const auto of_j = linalg::product<Vector>(l.M, j.p);
    const auto of_l = linalg::product<Vector>(j.M, l.p);
    both_ = j.M + l.M;
    both_.diagonal().array() += 1.0;
    kept_ = factored(both_) && kept_;
    Vector solved = of_j + of_l;
    linalg::solve_lower(both_, solved);
    const double rho = j.p.dot(of_j) + l.p.dot(of_l) - solved.squaredNorm();
    change_.setZero(j.H.rows(), l.H.cols());
    linalg::add_product(j.H, l.H, change_, -1.0);
    const std::optional<double> near = log_near_identity(change_);
    const double lambda = near ? -*near : j.log_determinant + l.log_determinant - linalg::log_determinant(both_);
    rest = 0.5 * (lambda - rho);
  }

  const Side& side_;
  std::unique_ptr<PairMoments> careful_;
  bool kept_ = true;  ///< all digits of the last tile
  Parts x_;
  MatrixXd R_;
  Block block_;
  std::vector<Bump> rows_;
  std::vector<Bump> columns_;
  MatrixXd both_;
  MatrixXd change_;
};

}  // namespace

std::unique_ptr<PairMoments> make_latent_moments(const Side& z) { return std::make_unique<LatentMoments>(z); }

}  // namespace halosvm::kernels
