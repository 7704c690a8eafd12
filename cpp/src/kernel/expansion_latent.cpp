#include "expansion.hpp"
#include "expansion_parts.hpp"

#include <Eigen/Cholesky>

#include <vector>

namespace halosvm::kernels {
namespace {

/// One Z_j as seen through x = mu + R xi with S = R R': h_j is a Gaussian bump in the latent xi, of precision M = R'P R
/// and slope v = R'P d, where P = (I + T_j)^-1.
struct Bump {
  Parts parts;
  MatrixXd M;
  MatrixXd H;                      ///< M (I + M)^-1
  Eigen::LLT<MatrixXd> precision;  ///< of N = I + M
  Vector p;                        ///< N^-1 v, which is R'a
  Vector a;                        ///< B^-1 d
  double log_determinant = 0.0;    ///< of N
  double exponent = 0.0;

  void turn(const Vector& mean, const MatrixXd& R) {
    const Vector d = mean - parts.mean;
    MatrixXd solved(R.rows(), R.cols() + 1);  // P [R d]
    solved.leftCols(R.cols()) = R;
    solved.rightCols(1) = d;
    const double log_own = apply_inverse(solved);
    a = solved.rightCols(1);
    double quadratic = d.dot(a);
    log_determinant = 0.0;
    if (R.cols() > 0) {
      const auto PR = solved.leftCols(R.cols());
      M.noalias() = R.transpose() * PR;
      precision.compute(MatrixXd::Identity(R.cols(), R.cols()) + M);
      log_determinant = 2.0 * precision.matrixLLT().diagonal().array().log().sum();
      H = precision.solve(M);
      const Vector v = PR.transpose() * d;
      p = precision.solve(v);
      quadratic -= v.dot(p);
      a -= PR * p;
    }
    exponent = 0.5 * (log_own + log_determinant + not_negative(quadratic));
  }

 private:
  /// Replaces X by P X and returns log |I + T_j|.
  double apply_inverse(MatrixXd& X) const {
    if (parts.matrix.size() > 0) {
      const Eigen::LLT<MatrixXd> own(MatrixXd::Identity(X.rows(), X.rows()) + parts.matrix);
      own.solveInPlace(X);
      return 2.0 * own.matrixLLT().diagonal().array().log().sum();
    }
    const Vector A = 1.0 + parts.v.array();
    const double logs = parts.v.array().log1p().sum();
    X = A.cwiseInverse().asDiagonal() * X;
    if (parts.F.cols() == 0) return logs;
    const MatrixXd weighted = A.cwiseInverse().asDiagonal() * parts.F;
    const Eigen::LLT<MatrixXd> inner(MatrixXd::Identity(parts.F.cols(), parts.F.cols()) +
                                     parts.F.transpose() * weighted);
    X -= weighted * inner.solve(parts.F.transpose() * X);
    return logs + 2.0 * inner.matrixLLT().diagonal().array().log().sum();
  }
};

/// All pairs in the r latent variables of x, whatever the Z_j are:
///
///     first = p_j'p_l,    lambda = -log |I - H_j H_l| = log |N_j| + log |N_l| - log |N|,    N = I + M_j + M_l,
///     rho = p_j'M_l p_j + p_l'M_j p_l - c'N^-1 c,    c = M_l p_j + M_j p_l.
class LatentMoments final : public PairMoments {
 public:
  explicit LatentMoments(const Side& z) : side_(z) {}
  Index strip_rows() const override { return 16; }

  void load(const Block& x) override {
    x_.load(x, 0);
    x_.factor_matrix();
    const bool diagonal = x_.v.maxCoeff() > 0.0;
    const Index d = x_.mean.size();
    R_.setZero(d, (diagonal ? d : 0) + x_.F.cols());
    if (diagonal) R_.leftCols(d).diagonal() = x_.v.cwiseSqrt();
    R_.rightCols(x_.F.cols()) = x_.F;
  }

  void fill(const Rows& rows, const Rows& columns, PairTile& out, Checkpoint& checkpoint) override {
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
  }

  void add_gradients(const Matrix& weights, Matrix& gradients) const override {
    for (Index i = 0; i < weights.cols(); ++i) {
      gradients.noalias() += weights.col(i) * rows_[static_cast<std::size_t>(i)].a.transpose();
    }
  }

  double spread(const Vector& g) const override { return (R_.transpose() * g).squaredNorm(); }

 private:
  void turn(const Rows& strip, std::vector<Bump>& bumps, Checkpoint& checkpoint) {
    block_.load(side_, strip.begin, strip.count);
    bumps.resize(static_cast<std::size_t>(strip.count));
    for (Index i = 0; i < strip.count; ++i) {
      checkpoint();
      Bump& bump = bumps[static_cast<std::size_t>(i)];
      bump.parts.load(block_, i);
      bump.turn(x_.mean, R_);
    }
  }

  static void set_exponents(const std::vector<Bump>& bumps, Index count, Vector& out) {
    out.resize(count);
    for (Index i = 0; i < count; ++i) out(i) = bumps[static_cast<std::size_t>(i)].exponent;
  }

  void pair(const Bump& j, const Bump& l, double& first, double& rest) {
    first = j.p.dot(l.p);
    const Vector of_j = l.M * j.p;
    const Vector of_l = j.M * l.p;
    both_ = j.M + l.M;
    both_.diagonal().array() += 1.0;
    precision_.compute(both_);
    const Vector solved = precision_.matrixL().solve(of_j + of_l);
    const double rho = j.p.dot(of_j) + l.p.dot(of_l) - solved.squaredNorm();
    change_.noalias() = -j.H * l.H;
    const std::optional<double> near = log_near_identity(change_);
    const double lambda =
        near ? -*near
             : j.log_determinant + l.log_determinant - 2.0 * precision_.matrixLLT().diagonal().array().log().sum();
    rest = 0.5 * (lambda - rho);
  }

  const Side& side_;
  Parts x_;
  MatrixXd R_;
  Block block_;
  std::vector<Bump> rows_;
  std::vector<Bump> columns_;
  MatrixXd both_;
  MatrixXd change_;
  Eigen::LLT<MatrixXd> precision_;
};

}  // namespace

std::unique_ptr<PairMoments> make_latent_moments(const Side& z) { return std::make_unique<LatentMoments>(z); }

}  // namespace halosvm::kernels
