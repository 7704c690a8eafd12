// Wide data: an objective comes in, the same one in an orthonormal basis of its examples goes out.

#include "solver/wide_data.hpp"

#include "gaussians/norms.hpp"
#include "linalg/qr.hpp"

#include <algorithm>
#include <memory>

namespace halosvm {
namespace {

constexpr Index panel = 64;  ///< columns that are reflected together

/// The covariances in a basis of the means alone, or null where spreads have directions of their own.
std::shared_ptr<const Covariances> of_means_alone(const LocalObjective& objective, Index size) {
  if (objective.all_certain()) return no_covariances(objective.n_samples(), size);
  return objective.data().covariances().in_basis(size);
}

/// Columns of all factors; 0 if there are none to heed.
Index columns_of_factors(const LocalObjective& objective) {
  const Index n = objective.n_samples();
  return of_means_alone(objective, n) != nullptr ? 0 : total_rank(*objective.data().covariances().factors(), n);
}

/// The means and then the columns of all factors, as columns.
Eigen::MatrixXd all_columns(const LocalObjective& objective) {
  const Index n = objective.n_samples();
  const Index d = objective.n_features();
  const Index total = columns_of_factors(objective);
  Eigen::MatrixXd columns(d, n + total);
  const Chunks chunks(n, 1);
  run_tasks(chunks.count(), objective.execution(), [&](Index chunk, int /*slot*/, Checkpoint& checkpoint) {
    Vector scratch(std::max(d, objective.data().covariances().scratch_size({1, 1})));
    Matrix column(1, d);
    for (Index i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      checkpoint();
      const Rows row{i, 1};
      columns.col(i) = objective.data().means().block(row, scratch.data()).transpose();
      if (total == 0) continue;
      const Factors& factors = *objective.data().covariances().factors();
      for (Index j = 0; j < factors.rank(i); ++j) {
        factors.combine(row, Vector::Unit(factors.rank(i), j), column, scratch.data());
        columns.col(n + factors.first_column(i) + j) = column.row(0).transpose();
      }
    }
  });
  return columns;
}

}  // namespace

bool Span::pays(const LocalObjective& objective) {
  constexpr Index few = 100;  // features with which nothing takes long
  if (objective.n_features() < few) return false;
  if (!objective.all_certain()) {
    const Covariances& covariances = objective.data().covariances();
    if (covariances.factors() == nullptr) return false;
    // Without kinks a few passes take less time than the basis.
    if (covariances.in_basis(1) != nullptr && !objective.has_many_kinks()) return false;
  }
  const Index size = objective.n_samples() + columns_of_factors(objective);
  // The span is a dense matrix of all examples, which sparse ones are here to avoid.
  constexpr Index little = Index{1} << 23;  // numbers
  if (objective.data().means().sparse() && size * objective.n_features() > little) return false;
  return size <= interior_point_features && 2 * size <= objective.n_features();
}

Span::Span(const LocalObjective& objective) : columns_(all_columns(objective)), objective_(objective) {
  triangularise(objective.execution());
  objective_ = objective.on(project(objective));
}

void Span::triangularise(const Execution& execution) {
  const Index d = columns_.rows();
  const Index size = columns_.cols();
  for (Index begin = 0; begin < size; begin += panel) {
    const Index count = std::min(panel, size - begin);
    const ColumnsRef here = columns_.block(begin, begin, d - begin, count);
    reflections_.push_back(linalg::qr(here));
    const Index rest = size - begin - count;
    run_tasks((rest + panel - 1) / panel, execution, [&](Index task, int /*slot*/, Checkpoint& checkpoint) {
      checkpoint();
      const Index first = begin + count + task * panel;
      linalg::apply_q_transposed(here, reflections_.back(),
                                 columns_.block(begin, first, d - begin, std::min(panel, size - first)));
    });
  }
}

Gaussians Span::project(const LocalObjective& objective) {
  const Index n = objective.n_samples();
  const Index size = columns_.cols();
  means_.setZero(n, size);
  means_.leftCols(n).triangularView<Eigen::Lower>() = columns_.topLeftCorner(n, n).transpose();
  const ArrayView means(means_.data(), n, size);
  if (size == n) return {means, of_means_alone(objective, n)};

  const Factors& factors = *objective.data().covariances().factors();
  factors_.reserve(static_cast<std::size_t>(size * (size - n)));
  offsets_.push_back(0);
  for (Index i = 0; i < n; ++i) {
    const Index first = n + factors.first_column(i);
    for (Index row = 0; row < size; ++row) {
      for (Index column = first; column < first + factors.rank(i); ++column) {
        factors_.push_back(row <= column ? columns_(row, column) : 0.0);
      }
    }
    offsets_.push_back(first + factors.rank(i) - n);
  }
  const ArrayView stored(factors_.data(), 1, static_cast<Index>(factors_.size()));
  return {means, in_norm(low_rank_covariances(stored, offsets_.data(), n, size), conjugate(objective.spread_norm()))};
}

LinearModel Span::out_of(const LinearModel& model) const {
  Eigen::MatrixXd coef = Eigen::MatrixXd::Zero(columns_.rows(), model.coef.rows());
  coef.topRows(columns_.cols()) = model.coef.transpose();
  for (Index k = static_cast<Index>(reflections_.size()) - 1; k >= 0; --k) {
    const Vector& coefficients = reflections_[static_cast<std::size_t>(k)];
    const Index rows = coef.rows() - k * panel;
    const auto below = columns_.block(k * panel, k * panel, rows, coefficients.size());
    linalg::apply_q(below, coefficients, coef.bottomRows(rows));
  }
  LinearModel outside = model;
  outside.coef = coef.transpose();
  return outside;
}

}  // namespace halosvm
