// Scores of kernel machines: a model and Gaussians come in, expectations and standard deviations go out.

#include "halosvm/model/kernel_model.hpp"

#include "halosvm/core/check.hpp"
#include "halosvm/model/linear_model.hpp"
#include "linalg/multiply.hpp"

#include <algorithm>
#include <string>

namespace halosvm {
namespace {

bool of_distances(KernelKind kind) { return kind == KernelKind::rbf || kind == KernelKind::laplacian; }

void check_scores(const KernelModel& model, const Mixtures& X, const MatrixRef& out) {
  const Mixtures& Z = *check::given(model.support, "support");
  const Index n_scores = model.coefficients.rows();
  check::same_size("X", X.n_features(), "support", Z.n_features(), "columns");
  check::same_size("coefficients", model.coefficients.cols(), "support", Z.n_samples(), "columns");
  check::same_size("intercept", model.intercept.size(), "coefficients", n_scores, "scores");
  check::same_size("out", out.rows(), "X", X.n_samples(), "rows");
  check::same_size("out", out.cols(), "coefficients", n_scores, "scores");
}

/// k(X_i, X_i); of a normalised kernel 1, or 0 where it vanishes.
Vector with_themselves(const ExpectedKernel& kernel, const Mixtures& X, const Execution& execution) {
  if (kernel.normalize && of_distances(kernel.kind)) return Vector::Ones(X.n_samples());
  const Vector values = gram_diagonal(kernel, X, execution);
  return kernel.normalize ? Vector((values.array() > 0.0).cast<double>()) : values;
}

/// Replaces values k of a kernel by exp(-(k(X, X) + k(Z, Z) - 2 k) / (2 tau^2)).
void to_level2(const KernelModel& model, const Mixtures& X, Matrix& K, const Execution& execution) {
  const Vector of_rows = with_themselves(model.kernel, X, execution);
  const Vector of_columns = with_themselves(model.kernel, *model.support, execution);
  for (Index i = 0; i < K.rows(); ++i) {
    const auto distances = (of_rows(i) + of_columns.transpose().array() - 2.0 * K.row(i).array()).max(0.0);
    K.row(i) = (distances / model.tau / (-2.0 * model.tau)).exp();
  }
}

/// The coefficients of the components of all support examples.
Matrix of_components(const KernelModel& model) {
  const Mixtures& Z = *model.support;
  Matrix out(model.coefficients.rows(), Z.components().n_samples());
  for (Index j = 0; j < Z.n_samples(); ++j) {
    for (Index a = Z.begin(j); a < Z.end(j); ++a) out.col(a) = Z.weight(a) * model.coefficients.col(j);
  }
  return out;
}

/// The gamma of each feature; of the linear kernel 1.
Vector gammas(const KernelModel& model) {
  const ExpectedKernel& kernel = model.kernel;
  const Index d = model.support->n_features();
  if (kernel.kind == KernelKind::linear) return Vector::Ones(d);
  return kernel.gamma.size() == 1 ? Vector(Vector::Constant(d, kernel.gamma(0))) : kernel.gamma;
}

/// w_p = G sum_j c_pj z_j with G = diag(gamma), of which kernels that are linear in x make w'x.
LinearModel weights_of(const KernelModel& model, const Matrix& coefficients) {
  const Means& means = model.support->components().means();
  LinearModel out(coefficients.rows(), means.cols());
  Vector scratch(means.scratch_size(means.rows(), coefficients.rows()));
  means.add_weighted_rows({0, means.rows()}, coefficients, out.coef, scratch.data());
  out.coef *= gammas(model).asDiagonal();
  return out;
}

/// Variances of x'M x + k'x, x ~ N(mu, S): 2 tr(M S M S) + v'S v with v = 2 M mu + k. (x'G z + c)^2 over z ~ N(z_j,
/// T_j) makes M = G sum_j c_j (z_j z_j' + T_j) G and k = 2 c G sum_j c_j z_j.
void quadratic_variance(const KernelModel& model, const Gaussians& X, MatrixRef out) {
  const Gaussians& Z = model.support->components();
  const Index d = X.n_features();
  const Index m = Z.n_samples();
  const Matrix coefficients = of_components(model);
  const LinearModel linear = weights_of(model, coefficients);
  Matrix memory(m, d);
  const ConstMatrixMap points = Z.means().block({0, m}, memory.data());
  Vector scratch(std::max(Z.covariances().scratch_size({m, 1}), X.covariances().scratch_size({1, 1})));
  Matrix row(1, d);
  for (Index p = 0; p < out.cols(); ++p) {
    Matrix sum = Matrix::Zero(d, d);
    Z.covariances().add_weighted_matrices({0, m}, coefficients.row(p).transpose(), sum, scratch.data());
    Matrix M = sum.selfadjointView<Eigen::Lower>();
    const Matrix weighted = coefficients.row(p).asDiagonal() * points;
    linalg::add_product(points.transpose(), weighted, M);
    const Vector gamma = gammas(model);
    M = (gamma.asDiagonal() * M * gamma.asDiagonal()).eval();
    for (Index i = 0; i < X.n_samples(); ++i) {
      sum.setZero();
      X.covariances().add_weighted_matrices({i, 1}, Vector::Ones(1), sum, scratch.data());
      const Matrix S = sum.selfadjointView<Eigen::Lower>();
      const Matrix MS = linalg::product(M, S);
      Vector v = 2.0 * model.kernel.coef0 * linear.coef.row(p).transpose();
      linalg::add_product(M, X.means().block({i, 1}, row.data()).transpose(), v, 2.0);
      out(i, p) = 2.0 * MS.cwiseProduct(MS.transpose()).sum() + v.dot(linalg::product<Vector>(S, v));
    }
  }
}

}  // namespace

void decision_function(const KernelModel& model, const Mixtures& X, MatrixRef out, const Execution& execution) {
  check_scores(model, X, out);
  const Mixtures& Z = *model.support;
  Matrix K(X.n_samples(), Z.n_samples());
  if (K.size() > 0) {
    gram(model.kernel, X, Z, {K.data(), nullptr, K.cols()}, execution);
    if (model.tau > 0.0) to_level2(model, X, K, execution);
  }
  linalg::multiply(K, model.coefficients.transpose(), out);
  out.rowwise() += model.intercept.transpose();
  for (Index i = 0; i < out.rows(); ++i) {
    if (!out.row(i).allFinite()) check::fail("X", "row " + std::to_string(i) + " is so large that its score overflows");
  }
}

void decision_std(const KernelModel& model, const Mixtures& X, MatrixRef out, const Execution& execution) {
  check_scores(model, X, out);
  const ExpectedKernel& kernel = model.kernel;
  const int order = kernel.kind == KernelKind::linear ? 1 : (kernel.kind == KernelKind::polynomial ? kernel.degree : 0);
  const bool rbf = kernel.kind == KernelKind::rbf;
  check::require(model.tau == 0.0 && (rbf || (!kernel.normalize && (order == 1 || order == 2))), "kernel",
                 "has no standard deviation of scores in closed form; rbf, and linear and polynomial of degree 1 and 2 "
                 "that are not normalised, have one");
  check::require(rbf || X.plain(), "X", "has mixtures, of which rbf alone has standard deviations of scores here");
  if (model.coefficients.cols() == 0) {
    out.setZero();
  } else if (rbf) {
    expansion_variance(kernel, X, *model.support, model.coefficients, out, execution);
    out = out.cwiseSqrt();
  } else if (order == 1) {
    decision_std(weights_of(model, of_components(model)), X.components().covariances(), out, execution);
  } else {
    X.components().check_once(execution);
    quadratic_variance(model, X.components(), out);
    out = out.cwiseMax(0.0).cwiseSqrt();
  }
}

}  // namespace halosvm
