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
};

struct VectorSum {
  Vector vector;
  void set_zero() { vector.setZero(); }
  void add(const VectorSum& other) { vector += other.vector; }
};

/// sum over all blocks of body(rows, c, memory, partial sum), added in the order of the rows.
template <class Body>
Vector sum_over_examples(const LocalObjective& objective, const Means& means, Index size, const Body& body) {
  const Index block = objective.data().block_rows();
  const Covariances& covariances = objective.data().covariances();
  BlockMemory<VectorSum, MomentMemory> memory;
  VectorSum total{Vector::Zero(size)};
  const auto fresh = [&] {
    return MomentMemory{std::vector<double>(static_cast<std::size_t>(means.scratch_size(block, 2))),
                        std::vector<double>(static_cast<std::size_t>(covariances.scratch_size({block, 1}))),
                        Vector(block)};
  };
  sum_over_blocks(
      Chunks(objective.n_samples(), objective.data().task_rows()), block, objective.execution(), memory,
      [&] { return VectorSum{Vector::Zero(size)}; }, fresh,
      [&](Index begin, Index count, MomentMemory& mine, VectorSum& part) {
        const Rows rows = objective.rows(begin, count);
        for (Index i = 0; i < count; ++i) mine.weights(i) = objective.weight(rows[i]);
        body(rows, mine.weights.head(count), mine, part.vector);
      },
      total);
  return total.vector;
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
  const LocalObjective& objective = *this;
  const Index d = n_features();
  const bool spread = uses_spread();
  const std::shared_ptr<const Means> means = data_.means().seen_from(rough_mean(objective));
  const Vector& about = means->origin();
  const Vector sums = sum_over_examples(
      objective, *means, 2 * d, [&](const Rows& rows, const ConstVectorRef& c, MomentMemory& memory, Vector& sum) {
        means->add_moments(rows, c, sum.head(d), sum.tail(d), memory.means.data());
        if (spread) data_.covariances().add_weighted_diagonals(rows, c, sum.tail(d), memory.scratch.data());
      });
  Moments result;
  result.mean = about + sums.head(d);
  result.centre = result.mean;
  result.variance = sums.tail(d);
  if (objective.fit_intercept()) {
    result.variance -= sums.head(d).cwiseAbs2();
  } else {  // the second moments about 0 instead
    result.centre.setZero();
    result.variance.array() += about.array().square() + 2.0 * about.array() * sums.head(d).array();
  }
  result.variance = result.variance.cwiseMax(0.0);
  if (uses_spread() && data_.covariances().cancels()) result.widest = widest_deviations(*this);
  return result;
}

}  // namespace halosvm
