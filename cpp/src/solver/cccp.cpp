// The concave-convex procedure: an objective that is not convex comes in, a model that no round improves goes out.

#include "solver/cccp.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halosvm {
namespace {

/// The convex objective above that of one problem which touches it at w, or, from a direction w, at 0.
class Majorant {
 public:
  Majorant(const LocalObjective& problem, const Matrix& coef)
      : means_(problem.n_samples(), problem.n_features()), objective_(problem) {
    move(problem, coef);
    const ArrayView moved(means_.data(), means_.rows(), means_.cols());
    objective_ = problem.on({moved, no_covariances(means_.rows(), means_.cols())})
                     .with_loss(make_loss(problem.loss()->traits().majorant));
  }
  Majorant(const Majorant&) = delete;
  Majorant& operator=(const Majorant&) = delete;

  const LocalObjective& objective() const { return objective_; }

 private:
  /// Fills in x_i + y_i S_i w / s_i; where s_i = 0, x_i.
  void move(const LocalObjective& problem, const Matrix& coef) {
    const Gaussians& data = problem.data();
    const Covariances& covariances = data.covariances();
    const Vector w = coef.row(0).transpose();
    const Index block = data.block_rows();
    const Chunks chunks(means_.rows(), data.task_rows());
    run_tasks(chunks.count(), problem.execution(), [&](Index chunk, int /*slot*/, Checkpoint& checkpoint) {
      Vector scratch(std::max(block * data.n_features(), covariances.scratch_size({block, 1})));
      Matrix variance(1, block);
      for (Index begin = chunks.begin(chunk); begin < chunks.end(chunk); begin += block) {
        checkpoint();
        const Rows rows{begin, std::min(block, chunks.end(chunk) - begin)};
        auto moved = means_.middleRows(begin, rows.count);
        covariances.products(rows, w, moved, scratch.data());
        covariances.bilinear(rows, coef, coef, variance.leftCols(rows.count), scratch.data());
        for (Index i = 0; i < rows.count; ++i) {
          const double s = std::sqrt(std::max(0.0, variance(0, i)));
          moved.row(i) *= s >= smallest_spread ? problem.sign(rows[i], 0) / s : 0.0;
        }
        moved += data.means().block(rows, scratch.data());
      }
    });
  }

  Matrix means_;
  LocalObjective objective_;
};

double value_at(const LocalObjective& problem, const LinearModel& model) {
  Evaluation at(1, problem.n_features());
  problem.evaluate(model.coef, model.intercept, 0.0, at);
  return at.value(0);
}

/// From one class to the other: where w = 0 touches the spreads, each direction gives other linear functions.
Matrix between_the_classes(const LocalObjective& problem) {
  const Matrix zero = Matrix::Zero(1, problem.n_features());
  Evaluation at(1, problem.n_features());
  problem.evaluate(zero, Vector::Zero(1), 0.0, at);
  return problem.dual_coef(zero, at, problem.moments().centre);
}

}  // namespace

Result run_rounds(const LocalObjective& problem, const Moments& /*about*/, const LinearModel& start,
                  const BatchSettings& settings) {
  const double resolution = 0.01 * settings.tolerance;
  Result best;
  best.model = start;
  best.objective = Vector::Constant(1, infinity);
  best.lower_bound = Vector::Zero(1);
  best.suboptimality = best.objective;
  best.status = Status::max_iterations;
  Matrix touched = start.coef;
  if (!touched.isZero(0.0)) best.objective(0) = value_at(problem, start);
  while (best.steps < settings.max_iterations) {
    BatchSettings inner;
    inner.tolerance = resolution;
    inner.max_iterations = settings.max_iterations - best.steps;
    const Majorant majorant(problem, touched);
    // Where J is small the next spreads need more digits of w than its own certificate: not single steps in the dual.
    Result round = apply(run_in_span, majorant.objective(), best.model, inner);
    best.steps += round.steps;
    best.epochs += round.epochs;
    const double before = best.objective(0);
    const double value = value_at(problem, round.model);
    if (value < before) {
      best.model = std::move(round.model);
      best.objective(0) = value;
    }
    if (settings.report) settings.report({best.epochs, best.objective(0), infinity});
    if (value < (1.0 - resolution) * before) {
      touched = best.model.coef.isZero(0.0) ? between_the_classes(problem) : best.model.coef;
      continue;
    }
    const bool proved = before - round.lower_bound(0) <= settings.tolerance * before;
    best.status = proved ? Status::stationary : round.status;
    if (converged(best.status)) best.status = Status::stalled;
    break;
  }
  return best;
}

}  // namespace halosvm
