// Unequal features: one problem and its Hessian come in, the same problem along principal axes goes out.

#include "solver/principal_axes.hpp"

#include "core/double_double.hpp"
#include "linalg/eigen.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace halosvm {
namespace {

Columns axes_of(const Matrix& hessian, Index d) {
  linalg::SymmetricEigen eigen;
  eigen.compute(Columns(hessian.topLeftCorner(d, d)));
  return eigen.vectors();
}

/// Whether covariances are the same in all axes.
bool alike(const LocalObjective& objective) {
  const Covariances& covariances = objective.data().covariances();
  return !objective.uses_spread() || covariances.certain() || covariances.in_basis(1) != nullptr;
}

/// Q'x with twice the digits of doubles, rounded once: where features are very unequal, digits of some cancel.
template <class Along, class Out>
void turn(const Columns& axes, const Along& x, Out out) {
  for (Index k = 0; k < axes.cols(); ++k) {
    DoubleDouble sum(0.0);
    for (Index j = 0; j < axes.rows(); ++j) sum.add_product(axes(j, k), x(j));
    out(k) = sum.value();
  }
}

}  // namespace

bool PrincipalAxes::fit(const LocalObjective& objective) {
  constexpr Index most = Index{1} << 24;  // numbers
  const Index numbers = objective.n_samples() * objective.n_features();
  if (objective.spread_norm() != 2.0 || numbers > most) return false;
  if (alike(objective)) return true;
  return !objective.data().covariances().cancels() && numbers * objective.n_features() <= most;
}

PrincipalAxes::PrincipalAxes(const LocalObjective& objective, const Matrix& hessian)
    : axes_(axes_of(hessian, objective.n_features())),
      means_(objective.data().n_samples(), objective.n_features()),
      objective_(objective) {
  const Index d = objective.n_features();
  const Chunks chunks(means_.rows(), 64);
  run_tasks(chunks.count(), objective.execution(), [&](Index chunk, int /*slot*/, Checkpoint& checkpoint) {
    Vector scratch(d);
    for (Index i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      checkpoint();
      turn(axes_, objective.data().means().block({i, 1}, scratch.data()).row(0), means_.row(i));
    }
  });
  objective_ = objective.on({ArrayView(means_.data(), means_.rows(), d), turned_covariances(objective)});
}

std::shared_ptr<const Covariances> PrincipalAxes::turned_covariances(const LocalObjective& objective) {
  const Index n = means_.rows();
  const Index d = means_.cols();
  const Covariances& covariances = objective.data().covariances();
  if (alike(objective)) {
    auto same = covariances.in_basis(d);
    return same != nullptr ? same : no_covariances(n, d);
  }
  Matrix root;
  offsets_.push_back(0);
  for (Index i = 0; i < n; ++i) {
    covariances.root(i, root);
    for (Index k = 0; k < root.cols(); ++k) {
      const Vector column = root.col(k);
      turn(axes_, column, root.col(k));
    }
    factors_.insert(factors_.end(), root.data(), root.data() + root.size());
    offsets_.push_back(offsets_.back() + root.cols());
  }
  const ArrayView stored(factors_.data(), 1, static_cast<Index>(factors_.size()));
  return low_rank_covariances(stored, offsets_.data(), n, d);
}

LinearModel PrincipalAxes::into(LinearModel model) const {
  model.coef = Matrix(model.coef * axes_);
  return model;
}

LinearModel PrincipalAxes::out_of(LinearModel model) const {
  model.coef = Matrix(model.coef * axes_.transpose());
  return model;
}

}  // namespace halosvm
