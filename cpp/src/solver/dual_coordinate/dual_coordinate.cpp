// The dual coordinate method: an objective of certain examples comes in, models and bounds of all problems go out.

#include "objective/rounding.hpp"
#include "solver/dual_coordinate/walk.hpp"
#include "solver/method.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace halosvm {
namespace {

/// One problem, from its first epoch to its last certificate.
class Run {
 public:
  Run(const LocalObjective& problem, const Moments& about, const Vector& squares, const BatchSettings& settings)
      : problem_(problem),
        settings_(settings),
        rounding_(problem_, about),
        centre_(about.centre),
        walk_(problem_, squares, settings.max_iterations),
        target_(2.0 * settings.tolerance),
        v_(squares.size()) {
    result_.model = LinearModel(1, problem.n_features());
    result_.objective = problem_.value_at_zero();
    result_.model.intercept = problem_.exact_intercept(result_.model.coef, result_.model.intercept);
    result_.lower_bound = Vector::Zero(1);
    judge(settings_, result_);
  }

  const Result& result() const { return result_; }
  bool ended() const { return ended_; }

  /// Epochs until a certificate is due, and once there is one, the last digits.
  void walk(Checkpoint& checkpoint) {
    // If that did not reach them, another variable is at its bound or free: after an epoch, again.
    finished_ = certificates_ > 0 && converged(result_.status) && !finished_;
    if (finished_) {
      walk_.finish(checkpoint);
    } else {
      walk_.run(target_, due_, checkpoint);
    }
  }

  /// The model of feasible dual variables, judged with its best intercept: two or three passes over the data, which
  /// run on all threads.
  void certify() {
    constexpr double rarely = 1.5;
    constexpr double least = 4.0;
    constexpr double exact = 1e-11;  // of bounds, whose rounding is about 1e-12
    constexpr Index most_finishes = 12;
    const double before = result_.suboptimality(0);
    walk_.make_feasible(v_);
    const double lower = bound();
    LinearModel model(1, problem_.n_features());
    model.coef.row(0) = w_.transpose();
    model.intercept = problem_.exact_intercept(model.coef, Vector::Constant(1, walk_.intercept()));
    Evaluation at(1, problem_.n_features());
    problem_.evaluate(model.coef, model.intercept, 0.0, at);
    if (at.value(0) < result_.objective(0)) {
      result_.objective = at.value;
      result_.model = std::move(model);
    }
    result_.lower_bound(0) = std::max(result_.lower_bound(0), lower);
    result_.steps = static_cast<Index>(std::ceil(walk_.passes()));
    result_.epochs = result_.steps;
    judge(settings_, result_);

    const double gap = result_.suboptimality(0);
    const bool stands = walk_.exhausted() && gap > 0.9 * before;
    const bool last_digits = finished_ && (gap <= exact || ++finishes_ >= most_finishes);
    const bool settled = converged(result_.status) && (last_digits || !walk_.can_finish());
    ended_ =
        settled || result_.steps >= settings_.max_iterations || stands || ++certificates_ >= settings_.max_iterations;
    // Examples that were passed over show in the gap, and then have their turn again.
    if (!(gap <= 2.0 * walk_.estimate())) walk_.take_all();
    // Estimates are above the gaps, by a factor that changes slowly.
    target_ = std::min(10.0 * settings_.tolerance, 0.9 * walk_.estimate() * (settings_.tolerance / gap));
    due_ = std::max(rarely * walk_.passes(), walk_.passes() + least);
    if (finished_) {
      target_ = 0.0;
      due_ = walk_.passes() + 1.0;
    }
  }

 private:
  /// The dual bound of v, and its w (spec A.8).
  double bound() {
    const double lam = problem_.regularisation();
    Evaluation at(1, problem_.n_features());
    double excess = 0.0;
    for (const Index row : walk_.rows()) {
      const double v = v_(row);
      if (v == 0.0) continue;
      const double curved = 0.5 * walk_.bend(row) * v * v;
      const double part = problem_.offset(row) * v - curved;
      const double y = problem_.sign(row, 0);
      at.dual(0) += lam * part;
      at.dual_size(0) += lam * (std::abs(problem_.offset(row)) * v + curved);
      at.square(0) += lam * v * (lam * v / problem_.weight(row));
      at.slope(0) += lam * v;
      excess += y * v;
      if (y > 0.0) at.dual_positive(0) += lam * part;
    }
    w_ = weighted_sum();
    Vector dual_w = lam * w_;
    if (problem_.fit_intercept()) {
      at.intercept(0) = -lam * excess;
      dual_w += at.intercept(0) * centre_;
    }
    return rounding_.bound(at, 0, w_, dual_w);
  }

  /// sum v y x, one task for each chunk of rows.
  Vector weighted_sum() {
    struct Sum {
      Matrix w;
      void set_zero() { w.setZero(); }
      void add(const Sum& other) { w += other.w; }
    };
    struct Work {
      Matrix a;
      Vector scratch;
    };
    const Gaussians& data = problem_.data();
    const Index block = data.block_rows();
    const Index d = problem_.n_features();
    BlockMemory<Sum, Work> memory;
    Sum total{Matrix::Zero(1, d)};
    sum_over_blocks(
        Chunks(problem_.n_samples(), data.task_rows()), block, problem_.execution(), memory,
        [&] { return Sum{Matrix::Zero(1, d)}; },
        [&] { return Work{Matrix(1, block), Vector(std::max<Index>(1, data.means().scratch_size(block, 1)))}; },
        [&](Index begin, Index count, Work& work, Sum& sum) {
          const Rows rows = problem_.rows(begin, count);
          for (Index i = 0; i < count; ++i) work.a(0, i) = v_(rows[i]) * problem_.sign(rows[i], 0);
          data.means().add_weighted_rows(rows, work.a.leftCols(count), sum.w, work.scratch.data());
        },
        total);
    return total.w.row(0).transpose();
  }

  LocalObjective problem_;
  BatchSettings settings_;
  Rounding rounding_;
  Vector centre_;
  CoordinateWalk walk_;
  double target_;     ///< estimate with which a certificate is due
  double due_ = 4.0;  ///< passes likewise
  Vector v_;
  Vector w_;
  Result result_;
  Index certificates_ = 0;
  bool finished_ = false;
  Index finishes_ = 0;
  bool ended_ = false;
};

/// |x_i|^2 of all rows.
Vector squares_of(const LocalObjective& objective) {
  const Gaussians& data = objective.data();
  Vector squares(data.n_samples());
  for_each_block(
      data.n_samples(), data.block_rows(), objective.execution(),
      [&] { return std::make_unique<Vector>(data.n_features()); },
      [&](Vector& scratch, Index begin, Index count) {
        data.means().squares({begin, count}, squares.segment(begin, count), scratch.data());
      });
  return squares;
}

}  // namespace

bool supports_dual_coordinate(const LocalObjective& objective) {
  return objective.loss()->traits().certain.end > 0.0 && objective.all_certain();
}

Result run_dual_coordinate(const LocalObjective& objective, const Moments& about, const LinearModel& start,
                           const BatchSettings& settings) {
  constexpr Index at_once = 8;  // problems, for each has memory for three numbers for each example
  const Vector squares = squares_of(objective);
  Result result;
  result.model = start;
  result.objective = Vector::Constant(objective.n_problems(), infinity);
  result.lower_bound = Vector::Zero(objective.n_problems());
  for (Index first = 0; first < objective.n_problems(); first += at_once) {
    const Index count = std::min(at_once, objective.n_problems() - first);
    std::vector<std::unique_ptr<Run>> runs;
    runs.reserve(static_cast<std::size_t>(count));
    for (Index k = 0; k < count; ++k) {
      runs.push_back(std::make_unique<Run>(objective.only(first + k), about, squares, settings));
    }
    std::vector<Run*> open;
    open.reserve(runs.size());
    for (const auto& run : runs) open.push_back(run.get());
    while (!open.empty()) {
      run_tasks(
          static_cast<Index>(open.size()), objective.execution(),
          [&](Index i, int /*slot*/, Checkpoint& checkpoint) { open[static_cast<std::size_t>(i)]->walk(checkpoint); });
      for (Run* run : open) run->certify();
      Index epochs = 0;
      for (Index k = 0; k < count; ++k) {
        const Result& one = runs[static_cast<std::size_t>(k)]->result();
        result.take(one, first + k);
        epochs = std::max(epochs, one.epochs);
      }
      result.steps = std::max(result.steps, epochs);
      if (settings.report) {
        judge(settings, result);
        settings.report({result.steps, result.objective.maxCoeff(), result.suboptimality.maxCoeff()});
      }
      open.erase(std::remove_if(open.begin(), open.end(), [](const Run* run) { return run->ended(); }), open.end());
    }
  }
  result.epochs = result.steps;
  judge(settings, result);
  return result;
}

}  // namespace halosvm
