// The spread of a kernel expansion: moments of pairs of sections come in, variances of its values go out.

#include "kernel/expansion/expansion.hpp"

#include "kernel/expansion/exponentials.hpp"

#include "halosvm/core/check.hpp"
#include "halosvm/kernel/kernel.hpp"
#include "kernel/self_kernel.hpp"
#include "kernel/scaling.hpp"
#include "linalg/multiply.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace halosvm {
namespace {

using kernels::Block;
using kernels::exp_of_difference;
using kernels::exp_without_two_terms;
using kernels::PairMoments;
using kernels::PairTile;
using kernels::Side;
using kernels::small;

/// exp(-x) for each x. Eigen's own exp of arrays ends at 1e-308 instead of 0 where registers are short, and a sum over
/// examples that are far away would end at its square root.
Vector exp_of_negated(const Vector& x) {
  return x.unaryExpr([](double value) { return std::exp(-value); });
}

/// The variance of f_p(x) = sum_j c(p, j) h_j(x) for one Gaussian x at a time.
class Expansion {
 public:
  /// \param weights n_problems x n_z. \param shifts are added to the exponents of the h_j.
  Expansion(std::unique_ptr<PairMoments> moments, const Matrix& weights, const Vector& shifts)
      : moments_(std::move(moments)), weights_(weights), shifts_(shifts) {}

  /// Means and variances of all f_p, with all h_j multiplied by exp(-shift).
  void compute(const Block& x, double shift, Checkpoint& checkpoint, VectorRef mean, VectorRef variance) {
    const Index n = weights_.cols();
    const Index step = moments_->strip_rows();
    moments_->load(x);
    gradients_.setZero(weights_.rows(), x.mean.cols());
    mean.setZero();
    variance.setZero();
    for (Index i = 0; i < n; i += step) {
      const Rows rows{i, std::min(step, n - i)};
      for (Index j = i; j < n; j += step) {
        const Rows columns{j, std::min(step, n - j)};
        moments_->fill(rows, columns, tile_, checkpoint);
        tile_.row_exponents.array() += shifts_.segment(rows.begin, rows.count).array() + shift;
        tile_.column_exponents.array() += shifts_.segment(columns.begin, columns.count).array() + shift;
        if (i == j) add_first_order(rows, mean);
        add_higher_orders(rows, columns, i == j ? 1.0 : 2.0, variance);
      }
    }
    for (Index p = 0; p < variance.size(); ++p) {
      // What rounding leaves below 0 is no variance.
      variance(p) = std::max(0.0, variance(p) + moments_->spread(gradients_.row(p).transpose()));
    }
  }

 private:
  void add_first_order(const Rows& rows, VectorRef mean) {
    values_ = weights_.middleCols(rows.begin, rows.count);
    values_.array().rowwise() *= exp_of_negated(tile_.row_exponents).transpose().array();
    mean += values_.rowwise().sum();
    moments_->add_gradients(values_, gradients_);
  }

  /// E h_j h_l - E h_j E h_l (1 + first), in place of tile.first, weighted and summed. With t = first + rest it is
  /// E h_j E h_l (rest + exp(t) - 1 - t), which keeps its digits where t is small.
  void add_higher_orders(const Rows& rows, const Rows& columns, double times, VectorRef variance) {
    const Vector scales = exp_of_negated(tile_.column_exponents);
    const double* __restrict exponents = tile_.column_exponents.data();
    for (Index i = 0; i < rows.count; ++i) {
      double* __restrict first = tile_.first.row(i).data();
      const double* __restrict rest = tile_.rest.row(i).data();
      const double exponent = tile_.row_exponents(i);
      const double scale = std::exp(-exponent);
      if (((tile_.first.row(i) + tile_.rest.row(i)).array().abs() < small).all()) {
        for (Index j = 0; j < columns.count; ++j) {
          first[j] = scale * scales(j) * (rest[j] + exp_without_two_terms(first[j] + rest[j]));
        }
        continue;
      }
      for (Index j = 0; j < columns.count; ++j) {
        const double t = first[j] + rest[j];
        const double sum = exponent + exponents[j];
        const double product = scale * scales(j);
        // One exponential, because its factors may overflow where it does not; where a distance overflowed it is 0.
        const double far = exp_of_difference(sum, t) - product * (1.0 + first[j]);
        const double near = product * (rest[j] + exp_without_two_terms(t));
        const double either = std::abs(t) < small ? near : far;
        first[j] = sum < infinity ? either : 0.0;
      }
    }
    linalg::multiply(weights_.middleCols(rows.begin, rows.count), tile_.first, values_);
    variance += times * values_.cwiseProduct(weights_.middleCols(columns.begin, columns.count)).rowwise().sum();
  }

  std::unique_ptr<PairMoments> moments_;
  const Matrix& weights_;
  const Vector& shifts_;
  PairTile tile_;
  Matrix values_;
  Matrix gradients_;
};

/// Variances of mixtures from the means and variances of their components.
void combine(const Mixtures& X, const Matrix& means, const Matrix& variances, MatrixRef out) {
  for (Index i = 0; i < X.n_samples(); ++i) {
    Eigen::RowVectorXd mean = Eigen::RowVectorXd::Zero(out.cols());
    for (Index a = X.begin(i); a < X.end(i); ++a) mean += X.weight(a) * means.row(a);
    out.row(i).setZero();
    for (Index a = X.begin(i); a < X.end(i); ++a) {
      out.row(i) += X.weight(a) * (variances.row(a) + (means.row(a) - mean).cwiseAbs2());
    }
  }
}

/// The coefficients of the mixtures, for each of their components.
Matrix spread_out(const Mixtures& Z, const ConstMatrixRef& coefficients) {
  Matrix out(coefficients.rows(), Z.components().n_samples());
  for (Index i = 0; i < Z.n_samples(); ++i) {
    for (Index a = Z.begin(i); a < Z.end(i); ++a) out.col(a) = coefficients.col(i);
  }
  return out;
}

}  // namespace

bool kernels::diagonal_moments(const Side& x, const Side& z) {
  return x.rank() + z.rank() == 0 && x.full() == nullptr && z.full() == nullptr;
}

std::unique_ptr<PairMoments> kernels::make_moments(const Side& x, const Side& z, const Block& all) {
  if (diagonal_moments(x, z)) return make_diagonal_moments(x, z, all);
  const bool without_diagonal = x.low_rank() != nullptr && x.diagonal() == nullptr;
  if (x.full() != nullptr || z.full() != nullptr || without_diagonal) return make_latent_moments(z);
  return make_factor_moments(z);
}

void expansion_variance(const ExpectedKernel& kernel, const Mixtures& X, const Mixtures& Z,
                        const ConstMatrixRef& coefficients, MatrixRef out, const Execution& execution) {
  check::same_size("Z", Z.n_features(), "X", X.n_features(), "features");
  check::same_size("coefficients", coefficients.cols(), "Z", Z.n_samples(), "rows");
  check::same_size("out", out.rows(), "X", X.n_samples(), "rows");
  check::same_size("out", out.cols(), "coefficients", coefficients.rows(), "problems");
  check::require(coefficients.allFinite(), "coefficients", "must be finite");
  X.components().check_once(execution);
  Z.components().check_once(execution);
  check::require(kernel.kind == KernelKind::rbf, "kind", "must be rbf");
  kernels::check_kernel(kernel, X.n_features());
  const Vector scale = kernels::scale_of(kernel);
  const Vector centre = kernels::centre_of(kernel, Z.components());
  const Side x_side(X.components(), scale, centre);
  const Side z_side(Z.components(), scale, centre);
  const Matrix weights = spread_out(Z, coefficients);
  const Vector shifts = kernels::component_factors(kernel, Z, z_side, execution);
  Vector own = Vector::Zero(X.n_samples());
  if (kernel.normalize) own = -0.5 * kernels::own_kernels(kernel, X, x_side, execution);

  Block all;
  if (kernels::diagonal_moments(x_side, z_side)) all.load(z_side, 0, Z.components().n_samples());
  Matrix means(X.components().n_samples(), out.cols());
  Matrix variances(means.rows(), means.cols());
  run_tasks(X.n_samples(), execution, [&](Index i, int /*slot*/, Checkpoint& checkpoint) {
    Expansion expansion(kernels::make_moments(x_side, z_side, all), weights, shifts);
    Block x;
    for (Index a = X.begin(i); a < X.end(i); ++a) {
      x.load(x_side, a, 1);
      Vector mean(out.cols());
      Vector variance(out.cols());
      expansion.compute(x, own(i), checkpoint, mean, variance);
      means.row(a) = mean.transpose();
      variances.row(a) = variance.transpose();
    }
  });
  combine(X, means, variances, out);
}

}  // namespace halosvm
