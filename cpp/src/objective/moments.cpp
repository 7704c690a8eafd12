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
  Vector diagonal;
};

struct Sums {
  Vector first;
  Vector second;
  Vector widest;  ///< not a sum: the largest deviations, where they are wanted

  Sums(Index d, bool with_widest)
      : first(Vector::Zero(d)), second(Vector::Zero(d)), widest(Vector::Zero(with_widest ? d : 0)) {}

  void set_zero() {
    first.setZero();
    second.setZero();
    widest.setZero();
  }
  void add(const Sums& other) {
    first += other.first;
    second += other.second;
    widest = widest.cwiseMax(other.widest);
  }
};

/// sum over all blocks of body(rows, c, memory, partial sum), added in the order of the rows.
template <class Body>
Sums sum_over_examples(const LocalObjective& objective, const Means& means, bool with_widest, const Body& body) {
  const Index block = objective.data().block_rows();
  const Covariances& covariances = objective.data().covariances();
  const Index d = objective.n_features();
  BlockMemory<Sums, MomentMemory> memory;
  Sums total(d, with_widest);
  const auto fresh = [&] {
    return MomentMemory{std::vector<double>(static_cast<std::size_t>(means.scratch_size(block, 2))),
                        std::vector<double>(static_cast<std::size_t>(covariances.scratch_size({block, 1}))),
                        Vector(block), Vector(d)};
  };
  sum_over_blocks(
      Chunks(objective.n_samples(), objective.data().task_rows()), block, objective.execution(), memory,
      [&] { return Sums(d, with_widest); }, fresh,
      [&](Index begin, Index count, MomentMemory& mine, Sums& part) {
        const Rows rows = objective.rows(begin, count);
        for (Index i = 0; i < count; ++i) mine.weights(i) = objective.weight(rows[i]);
        body(rows, mine.weights.head(count), mine, part);
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

/// The diagonals of matrices one by one, as the largest of each feature is wanted.
void add_each_diagonal(const Covariances& covariances, const Rows& rows, const ConstVectorRef& c, MomentMemory& memory,
                       Sums& sum) {
  const Vector one = Vector::Ones(1);
  for (Index i = 0; i < rows.count; ++i) {
    memory.diagonal.setZero();
    covariances.add_weighted_diagonals({rows[i], 1}, one, memory.diagonal, memory.scratch.data());
    sum.second += c(i) * memory.diagonal;
    sum.widest = sum.widest.cwiseMax(memory.diagonal.cwiseSqrt());
  }
}

}  // namespace

/// One pass over the data, with squares about the mean of some examples: about 0 they would cancel far from it.
Moments LocalObjective::moments() const {
  const LocalObjective& objective = *this;
  const bool spread = uses_spread();
  const Covariances& covariances = data_.covariances();
  const bool one_by_one = spread && covariances.cancels();
  const std::shared_ptr<const Means> means = data_.means().seen_from(rough_mean(objective));
  const Vector about = means->origin_from(data_.means());
  const Sums sums = sum_over_examples(
      objective, *means, one_by_one, [&](const Rows& rows, const ConstVectorRef& c, MomentMemory& memory, Sums& sum) {
        means->add_moments(rows, c, sum.first, sum.second, memory.means.data());
        if (one_by_one) {
          add_each_diagonal(covariances, rows, c, memory, sum);
        } else if (spread) {
          covariances.add_weighted_diagonals(rows, c, sum.second, memory.scratch.data());
        }
      });
  Moments result;
  result.mean = about + sums.first;
  result.centre = result.mean;
  result.variance = sums.second;
  if (objective.fit_intercept()) {
    result.variance -= sums.first.cwiseAbs2();
  } else {  // the second moments about 0 instead
    result.centre.setZero();
    result.variance.array() += about.array().square() + 2.0 * about.array() * sums.first.array();
  }
  result.variance = result.variance.cwiseMax(0.0);
  result.widest = sums.widest;
  return result;
}

}  // namespace halosvm
