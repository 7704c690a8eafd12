#include "halosvm/moments.hpp"

#include <algorithm>
#include <vector>

namespace halosvm {
namespace {

/// Memory of one thread.
struct Memory {
  std::vector<double> means;
  std::vector<double> scratch;
  Vector weights;
};

/// sum over all blocks of body(rows, X, c, scratch, partial sum), added in the order of the rows.
template <class Body>
Vector reduce(const Objective& objective, const Body& body) {
  const Index d = objective.n_features();
  const Index block = objective.data().block_rows();
  const Covariances& covariances = objective.data().covariances();
  const Chunks chunks(objective.n_samples(), block);
  std::vector<Vector> partial(static_cast<std::size_t>(chunks.count()), Vector::Zero(d));
  std::vector<Memory> memory(
      static_cast<std::size_t>(thread_count(chunks.count(), objective.execution())),
      {std::vector<double>(static_cast<std::size_t>(block * d)),
       std::vector<double>(static_cast<std::size_t>(covariances.scratch_size({block, 1}))), Vector(block)});
  run_tasks(chunks.count(), objective.execution(), [&](Index chunk, int slot, Checkpoint& checkpoint) {
    Memory& mine = memory[static_cast<std::size_t>(slot)];
    for (Index begin = chunks.begin(chunk); begin < chunks.end(chunk); begin += block) {
      checkpoint();
      const Rows rows{begin, std::min(block, chunks.end(chunk) - begin)};
      for (Index i = 0; i < rows.count; ++i) mine.weights(i) = objective.weight(rows[i]);
      body(rows, objective.data().means().block(rows, mine.means.data()), mine.weights.head(rows.count),
           mine.scratch.data(), partial[static_cast<std::size_t>(chunk)]);
    }
  });
  Vector total = Vector::Zero(d);
  for (const Vector& part : partial) total += part;
  return total;
}

}  // namespace

Moments moments(const Objective& objective) {
  Moments result;
  result.mean = reduce(objective, [](const Rows& /*rows*/, const ConstMatrixMap& X, const ConstVectorRef& c,
                                     double* /*scratch*/, Vector& sum) { sum.noalias() += X.transpose() * c; });
  result.centre = result.mean;
  if (!objective.fit_intercept()) result.centre.setZero();
  const bool spread = objective.uses_spread();
  result.variance = reduce(
      objective, [&](const Rows& rows, const ConstMatrixMap& X, const ConstVectorRef& c, double* scratch, Vector& sum) {
        for (Index i = 0; i < rows.count; ++i) sum += c(i) * (X.row(i).transpose() - result.centre).cwiseAbs2();
        if (spread) objective.data().covariances().add_weighted_diagonals(rows, c, sum, scratch);
      });
  return result;
}

}  // namespace halosvm
