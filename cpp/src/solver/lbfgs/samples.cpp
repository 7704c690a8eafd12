// Samples of the rows, and the Hessian that they have.

#include "solver/lbfgs/samples.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace halosvm {
namespace {

/// psi_mm at w = 0, b = 0, with a floor of 1 where the loss has a kink.
double curvature_at_zero(const Loss& loss, bool floored) {
  const double m = loss.traits().margin;
  const double s = floored ? 1.0 : 0.0;
  double mm = 0.0;
  double ms = 0.0;
  double ss = 0.0;
  loss.second(1, &m, &s, &mm, &ms, &ss);
  return mm;
}

}  // namespace

Index sample_size(const LocalObjective& objective) {
  const Index n = objective.n_samples();
  const Index d = objective.n_features();
  // Their matrix costs m d^2 operations, at most as much as a few passes.
  const Means& means = objective.data().means();
  const Index read = std::max<Index>(1, d / std::max<Index>(1, means.rows_worth_a_vector()));  // numbers of a row
  const Index least = 4 * d;
  if (means.sparse() && 60 * n * read / d / d < least) return 0;
  const Index few = std::min({50 * d, n / 4, std::max(60 * n / d, least)});
  if (few < least || few < 200) return 0;
  // A sample of the sample does most of the work for a larger one, which is worth about a pass.
  const Index many = std::min({1000 * d, n / 10, 10 * n / d});
  return many >= 2 * few && objective.n_problems() == 1 && !objective.has_many_kinks() ? many : few;
}

std::vector<Index> spread_rows(const LocalObjective& objective, Index size) {
  const Index n = objective.n_samples();
  std::vector<Index> rows(static_cast<std::size_t>(size));
  std::uint64_t state = 0;
  for (Index j = 0; j < size; ++j) {  // one of each run of rows, by chance: rows may be sorted, or follow a period
    const Index begin = j * n / size;
    const Index end = (j + 1) * n / size;
    state = 6364136223846793005U * state + 1442695040888963407U;
    const auto within = static_cast<Index>((state >> 33) % static_cast<std::uint64_t>(end - begin));
    rows[static_cast<std::size_t>(j)] = objective.rows(begin + within, 1)[0];
  }
  return rows;
}

bool has_all_classes(const LocalObjective& objective, const std::vector<Index>& rows) {
  for (Index k = 0; k < objective.n_problems(); ++k) {
    Index positive = 0;
    Index negative = 0;
    for (const Index row : rows) {
      if (objective.weight(row) > 0.0) ++(objective.sign(row, k) > 0.0 ? positive : negative);
    }
    if (std::min(positive, negative) < 10) return false;
  }
  return true;
}

HessianModel::HessianModel(const LocalObjective& sample, const Moments& about, const LinearModel& model) {
  // Nearly certain examples would say too much; where all are, few are at their kink.
  const double floor = sample.has_many_kinks() ? 0.1 : 0.05;
  const Index d = sample.n_features();
  const Index n_problems = sample.n_problems();
  const LocalObjective smooth = sample.smoothed(floor);
  Matrix matrix;
  scale = Vector::Ones(n_problems);
  const bool has_hessian = sample.spread_norm() == 2.0;
  if (n_problems == 1 && has_hessian) {
    matrix = smooth.hessian(model.coef, model.intercept, about.centre);
  } else {
    const double density = curvature_at_zero(*smoothed_loss(sample.loss(), 1.0), sample.loss()->traits().kinked);
    Evaluation at(n_problems, d);
    smooth.value_and_gradient(model.coef, model.intercept, at);
    scale = at.curvature;
    const LocalObjective one = sample.only(0);
    const Gaussians& data = one.data();
    const Gaussians means(data.shared_means(), no_covariances(data.n_samples(), d));
    const LocalObjective model_of_one = has_hessian ? one.smoothed(1.0) : one.on(means).smoothed(1.0);
    matrix = model_of_one.hessian(Matrix::Zero(1, d), Vector::Zero(1), about.centre) / density;
    matrix.diagonal().head(d).array() += sample.regularisation() * (1.0 / scale.mean() - 1.0 / density);
  }
  matrix.diagonal().head(d) += 1e-3 * about.variance;  // for features that the sample may have missed
  auto cholesky = std::make_shared<CholeskyFactor>();
  if (cholesky->compute(matrix) && scale.minCoeff() > 0.0) factor = std::move(cholesky);
}

}  // namespace halosvm
