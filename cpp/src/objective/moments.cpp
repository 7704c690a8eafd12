// LocalObjective::moments: one pass over the examples, location and scale of the features go out.

#include "halosvm/objective/local_objective.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace halosvm {
namespace {

/// Memory of one thread.
struct MomentMemory {
  std::vector<double> means;
  std::vector<double> scratch;
  Vector weights;
  std::vector<Index> groups;
};

/// Sums of c x and of c for each group of examples, and of c [x^2 + diag(S)] for all.
struct MomentSums {
  Matrix first;
  Vector weight;
  Vector second;

  MomentSums(Index groups, Index n_features)
      : first(Matrix::Zero(groups, n_features)), weight(Vector::Zero(groups)), second(Vector::Zero(n_features)) {}
  void set_zero() {
    first.setZero();
    weight.setZero();
    second.setZero();
  }
  void add(const MomentSums& other) {
    first += other.first;
    weight += other.weight;
    second += other.second;
  }
};

/// The sums over all examples; groups are the sides y = -1 and y = 1 of one problem, and the classes of several.
MomentSums sum_over_examples(const LocalObjective& objective, const Means& means) {
  const Index d = objective.n_features();
  const Index n_problems = objective.n_problems();
  const Index n_groups = std::max<Index>(2, n_problems);
  const Index block = objective.data().block_rows();
  const Covariances& covariances = objective.data().covariances();
  BlockMemory<MomentSums, MomentMemory> memory;
  const auto fresh = [&] {
    return MomentMemory{std::vector<double>(static_cast<std::size_t>(means.scratch_size(block, 2))),
                        std::vector<double>(static_cast<std::size_t>(covariances.scratch_size({block, 1}))),
                        Vector(block), std::vector<Index>(static_cast<std::size_t>(block))};
  };
  MomentSums total(n_groups, d);
  sum_over_blocks(
      Chunks(objective.n_samples(), objective.data().task_rows()), block, objective.execution(), memory,
      [&] { return MomentSums(n_groups, d); }, fresh,
      [&](Index begin, Index count, MomentMemory& mine, MomentSums& part) {
        const Rows rows = objective.rows(begin, count);
        for (Index i = 0; i < count; ++i) {
          const Index group = n_problems == 1 ? (objective.sign(rows[i], 0) > 0.0 ? 1 : 0) : objective.code(rows[i]);
          mine.groups[static_cast<std::size_t>(i)] = group;
          mine.weights(i) = objective.weight(rows[i]);
          part.weight(group) += mine.weights(i);
        }
        const auto c = mine.weights.head(count);
        means.add_moments(rows, c, mine.groups.data(), part.first, part.second, mine.means.data());
        if (objective.uses_spread()) covariances.add_weighted_diagonals(rows, c, part.second, mine.scratch.data());
      },
      total);
  return total;
}

/// The mean of up to 256 examples spread over the data: near the mean of all, so that squares about it do not cancel.
Vector rough_mean(const LocalObjective& objective) {
  const Index n = objective.n_samples();
  const Index count = std::min<Index>(n, 256);
  const Means& means = objective.data().means();
  std::vector<double> scratch(static_cast<std::size_t>(means.scratch_size(1, 1)));
  Matrix sum = Matrix::Zero(1, objective.n_features());
  const Matrix one = Matrix::Ones(1, 1);
  for (Index i = 0; i < count; ++i) means.add_weighted_rows(objective.rows(i * n / count, 1), one, sum, scratch.data());
  return sum.row(0).transpose() / static_cast<double>(count);
}

/// The largest deviation of each feature.
Vector widest_deviations(const LocalObjective& objective) {
  const Covariances& covariances = objective.data().covariances();
  Vector scratch(covariances.scratch_size({1, 1}));
  Vector diagonal(objective.n_features());
  Vector widest = Vector::Zero(objective.n_features());
  for (Index i = 0; i < objective.n_samples(); ++i) {
    diagonal.setZero();
    covariances.add_weighted_diagonals(objective.rows(i, 1), Vector::Ones(1), diagonal, scratch.data());
    widest = widest.cwiseMax(diagonal.cwiseSqrt());
  }
  return widest;
}

}  // namespace

/// One pass over the data, with squares about the mean of some examples: about 0 they would cancel far from it.
Moments LocalObjective::moments() const {
  const std::shared_ptr<const Means> means = data_.means().seen_from(rough_mean(*this));
  const Vector& about = means->origin();
  const MomentSums sums = sum_over_examples(*this, *means);
  const Vector first = sums.first.colwise().sum().transpose();
  Moments result;
  result.mean = about + first;
  result.centre = result.mean;
  result.variance = sums.second;
  if (fit_intercept_) {
    result.variance -= first.cwiseAbs2();
  } else {  // the second moments about 0 instead
    result.centre.setZero();
    result.variance.array() += about.array().square() + 2.0 * about.array() * first.array();
  }
  result.variance = result.variance.cwiseMax(0.0);
  if (fit_intercept_ && has_plain_targets()) {
    result.share = sums.weight.tail(n_problems());
    result.positive = sums.first.bottomRows(n_problems()) - result.share * first.transpose();
  }
  if (uses_spread() && data_.covariances().cancels()) result.widest = widest_deviations(*this);
  return result;
}

}  // namespace halosvm
