// Moments of pairs of sections by the factors of the covariances.

#include "kernel/expansion/expansion.hpp"
#include "kernel/expansion/parts.hpp"
#include "kernel/rule.hpp"

#include "linalg/cholesky.hpp"
#include "linalg/lu.hpp"
#include "linalg/multiply.hpp"

#include <vector>

namespace halosvm::kernels {
namespace {

/// Factors of x whose squares exceed this many times the variances around them make the small change that coupling
/// makes a large one.
constexpr double widest = 0x1p10;

/// What a pair needs of one of its two examples: B = diag(b) + W W' with W = [F R] for x ~ N(mu, diag(s) + R R').
struct Section {
  Parts parts;
  bool wide = false;  ///< x is, as seen from here
  Vector d;           ///< mu - z
  Vector A;           ///< 1 + v
  Vector b;           ///< A + s
  MatrixXd W;
  MatrixXd Z;             ///< W'diag(b)^-1 W
  MatrixXd inner;         ///< Cholesky factor of I + Z
  Vector a;               ///< B^-1 d
  Vector Sa;              ///< S B^-1 d
  double exponent = 0.0;  ///< 1/2 (log |B| + d'B^-1 d)

  void turn(const Parts& x) {
    A = 1.0 + parts.v.array();
    b = A + x.v;
    W.resize(b.size(), parts.F.cols() + x.F.cols());
    W.leftCols(parts.F.cols()) = parts.F;
    W.rightCols(x.F.cols()) = x.F;
    const MatrixXd weighted = b.cwiseInverse().asDiagonal() * W;
    linalg::multiply(W.transpose(), weighted, Z);
    d = x.mean - parts.mean;
    a = d.cwiseQuotient(b);
    Vector z = Vector::Zero(W.cols());  // W'B^-1 d
    double logs = (b.array() - 1.0).log1p().sum();
    inner = MatrixXd::Identity(W.cols(), W.cols()) + Z;
    linalg::cholesky(inner);
    wide = x.F.cols() > 0 && Z.diagonal().tail(x.F.cols()).maxCoeff() > widest;
    if (wide) {
      solve_wide(logs, z);
    } else if (W.cols() > 0) {
      linalg::multiply(weighted.transpose(), d, z);
      linalg::cholesky_solve(inner, z);
      logs += linalg::log_determinant(inner);
      linalg::add_product(weighted, z, a, -1.0);
    }
    Sa = x.v.cwiseProduct(a);
    linalg::add_product(x.F, z.tail(x.F.cols()), Sa);
    if (!wide) exponent = 0.5 * (logs + not_negative(d.dot(a)));
  }

 private:
  /// Sets exponent, a and z where factors cancel.
  void solve_wide(double logs, Vector& z) {
    const Eigen::ArrayXd root = b.array().sqrt();
    MatrixXd stacked = MatrixXd::Zero(b.size() + W.cols(), W.cols() + 1);
    stacked.topRows(b.size()) << W, d;
    stacked.topRows(b.size()).array().colwise() /= root;
    stacked.bottomLeftCorner(W.cols(), W.cols()).setIdentity();
    Vector residual;
    exponent = orthogonal_exponent(stacked, logs, &residual);
    a = residual.head(b.size()).array() / root;
    z = -residual.tail(W.cols());
  }
};

/// Any covariances in parts. C = C_d + W P W' with W = diag(W_j, W_l): C_d holds the diagonals of B_j, S and B_l, and P
/// is I, with another I where R of one row of blocks meets R of the other. Without what couples the two rows it is
/// diag(B_j, B_l), so that everything follows from the small change that coupling makes in P W'C_d^-1 W.
class FactorMoments final : public PairMoments {
 public:
  explicit FactorMoments(const Side& z) : side_(z) {}
  Index strip_rows() const override { return 16; }

  void load(const Block& x) override {
    x_.load(x, 0);
    x_.factor_matrix();
    turned_ = -1;
  }

  void fill(const Rows& rows, const Rows& columns, PairTile& out, Checkpoint& checkpoint) override {
    if (rows.begin != turned_) turn(rows, rows_, checkpoint);
    turned_ = rows.begin;
    if (rows.begin != columns.begin) turn(columns, columns_, checkpoint);
    const std::vector<Section>& others = rows.begin == columns.begin ? rows_ : columns_;
    set_exponents(rows_, rows.count, out.row_exponents);
    set_exponents(others, columns.count, out.column_exponents);
    out.first.resize(rows.count, columns.count);
    out.rest.resize(rows.count, columns.count);
    for (Index i = 0; i < rows.count; ++i) {
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

  double spread(const Vector& g) const override {
    return x_.v.dot(g.cwiseAbs2()) + linalg::product<Vector>(x_.F.transpose(), g).squaredNorm();
  }

 private:
  void turn(const Rows& strip, std::vector<Section>& sections, Checkpoint& checkpoint) {
    block_.load(side_, strip.begin, strip.count);
    sections.resize(static_cast<std::size_t>(strip.count));
    for (Index i = 0; i < strip.count; ++i) {
      checkpoint();
      Section& section = sections[static_cast<std::size_t>(i)];
      section.parts.load(block_, i);
      section.parts.factor_matrix();
      section.turn(x_);
    }
  }

  static void set_exponents(const std::vector<Section>& sections, Index count, Vector& out) {
    out.resize(count);
    for (Index i = 0; i < count; ++i) out(i) = sections[static_cast<std::size_t>(i)].exponent;
  }

  void pair(const Section& j, const Section& l, double& first, double& rest) {
    if (j.wide || l.wide) {
      first = j.a.dot(l.Sa);
      rest = j.exponent + l.exponent - joint_exponent(j, l) - first;
      return;
    }
    const Eigen::ArrayXd s = x_.v.array();
    const Eigen::ArrayXd q = j.A.array() * l.A.array() + s * (j.A + l.A).array();
    const Eigen::ArrayXd e = s * (s / q);
    const Vector v_j = (l.b.array() * l.Sa.array() - s * j.Sa.array()) / q;  // C_d^-1 y
    const Vector v_l = (j.b.array() * j.Sa.array() - s * l.Sa.array()) / q;
    first = j.a.dot(l.Sa);
    double lambda = e.log1p().sum();
    double rho = l.Sa.dot(v_j) + j.Sa.dot(v_l);
    if (j.W.cols() + l.W.cols() > 0) {
      set_change(j, l, s, q, e);
      const double log_change = factor_change();
      lambda -= log_change;
      rho -= coupled_quadratic(j, l, v_j, v_l);
    }
    rest = 0.5 * (lambda - rho);
  }

  /// -log E h_j h_l, from C = C_d + G G' with G = [F_j 0 R; 0 F_l R]. Each feature's [b_j s; s b_l] in C_d is whitened
  /// by its Cholesky factor.
  double joint_exponent(const Section& j, const Section& l) {
    const Index d = x_.v.size();
    const Index n_j = j.parts.F.cols();
    const Index n_l = l.parts.F.cols();
    const Index size = n_j + n_l + x_.F.cols();
    const Eigen::ArrayXd s = x_.v.array();
    const Eigen::ArrayXd q = j.A.array() * l.A.array() + s * (j.A + l.A).array();
    stacked_.setZero(2 * d + size, size + 1);
    auto upper = stacked_.topRows(d);
    auto lower = stacked_.middleRows(d, d);
    upper.leftCols(n_j) = j.parts.F;
    upper.rightCols(x_.F.cols() + 1) << x_.F, j.d;
    lower.middleCols(n_j, n_l) = l.parts.F;
    lower.rightCols(x_.F.cols() + 1) << x_.F, l.d;
    lower -= x_.v.cwiseQuotient(j.b).asDiagonal() * upper;
    upper.array().colwise() /= j.b.array().sqrt();
    lower.array().colwise() *= (j.b.array() / q).sqrt();
    stacked_.bottomLeftCorner(size, size).setIdentity();
    return orthogonal_exponent(stacked_, q.log().sum());
  }

  /// change_ = (I + Z_0)^-1 (P W'C_d^-1 W - Z_0), with Z_0 = diag(Z_j, Z_l).
  void set_change(const Section& j, const Section& l, const Eigen::ArrayXd& s, const Eigen::ArrayXd& q,
                  const Eigen::ArrayXd& e) {
    const Index n_j = j.W.cols();
    const Index n_l = l.W.cols();
    change_.setZero(n_j + n_l, n_j + n_l);
    if (s.maxCoeff() > 0.0) {
      add_weighted(j.W, e / j.b.array(), j.W, change_.topLeftCorner(n_j, n_j));
      add_weighted(l.W, e / l.b.array(), l.W, change_.bottomRightCorner(n_l, n_l));
      add_weighted(j.W, -s / q, l.W, change_.topRightCorner(n_j, n_l));
      change_.bottomLeftCorner(n_l, n_j) = change_.topRightCorner(n_j, n_l).transpose();
    }
    const Index r = x_.F.cols();
    if (r > 0) {
      shared_ = change_;  // rows of R, which the coupling exchanges
      shared_.topLeftCorner(n_j, n_j) += j.Z;
      shared_.bottomRightCorner(n_l, n_l) += l.Z;
      change_.middleRows(n_j - r, r) += shared_.bottomRows(r);
      change_.bottomRows(r) += shared_.middleRows(n_j - r, r);
    }
    linalg::cholesky_solve(j.inner, change_.topRows(n_j));
    linalg::cholesky_solve(l.inner, change_.bottomRows(n_l));
  }

  /// out += left' diag(weights) right.
  void add_weighted(const MatrixXd& left, const Vector& weights, const MatrixXd& right, const linalg::Sum& out) {
    weighted_ = weights.asDiagonal() * right;
    linalg::add_product(left.transpose(), weighted_, out);
  }

  /// log |I + change_|; keeps the factors of that matrix.
  double factor_change() {
    const Index size = change_.rows();
    exchanged_.compute(MatrixXd::Identity(size, size) + change_);
    const std::optional<double> near = log_near_identity(change_);
    return near ? *near : exchanged_.log_abs_determinant();
  }

  /// u'(I + P W'C_d^-1 W)^-1 P u for u = W'v.
  double coupled_quadratic(const Section& j, const Section& l, const Vector& v_j, const Vector& v_l) {
    const Index n_j = j.W.cols();
    const Index n_l = l.W.cols();
    const Index r = x_.F.cols();
    Vector u = Vector::Zero(n_j + n_l);
    linalg::add_product(j.W.transpose(), v_j, u.head(n_j));
    linalg::add_product(l.W.transpose(), v_l, u.tail(n_l));
    Vector coupled = u;
    coupled.segment(n_j - r, r) += u.tail(r);
    coupled.tail(r) += u.segment(n_j - r, r);
    linalg::cholesky_solve(j.inner, coupled.head(n_j));
    linalg::cholesky_solve(l.inner, coupled.tail(n_l));
    return u.dot(exchanged_.solve(coupled));
  }

  const Side& side_;
  Parts x_;
  Block block_;
  Index turned_ = -1;  ///< the first of the rows that are as seen from x
  std::vector<Section> rows_;
  std::vector<Section> columns_;
  MatrixXd change_;
  MatrixXd shared_;
  MatrixXd weighted_;
  MatrixXd stacked_;
  linalg::Lu exchanged_;
};

}  // namespace

std::unique_ptr<PairMoments> make_factor_moments(const Side& z) { return std::make_unique<FactorMoments>(z); }

}  // namespace halosvm::kernels
