// Stochastic gradient descent: batches of rows come in, averaged models of all problems go out.

#include "halosvm/solver/sgd.hpp"

#include "halosvm/core/check.hpp"
#include "halosvm/solver/iterates.hpp"
#include "solver/method.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace halosvm {
namespace {

constexpr std::uint64_t golden = 0x9E3779B97F4A7C15U;

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): every bit of the input changes half of the output's.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

/// What the step sizes depend on.
struct Scale {
  Vector centre;   ///< weighted mean of the means, or 0
  double radius2;  ///< weighted mean of |x - centre|^2 + 1 + tr S
};

/// The walk of one problem; keeps its place between calls of \ref run.
class Walk {
 public:
  Walk(const LocalObjective& objective, const SgdSettings& settings, const Scale& scale, Index problem,
       const LinearModel& start)
      : objective_(objective),
        settings_(settings),
        scale_(scale),
        problem_(problem),
        batch_(std::min(settings.batch_size, objective.n_samples())),
        work_(objective, std::min(batch_, objective.data().block_rows()), 1),
        gradient_(1, objective.n_features()),
        support_(objective.n_features()),
        at_(start.coef.row(problem), scale.centre),
        b_(objective.fit_intercept() ? start.intercept(problem) + at_.along_centre(0) : 0.0),
        rows_(static_cast<std::size_t>(batch_)),
        delay_(settings.averaging == Averaging::weighted
                   ? steepness(objective) * scale.radius2 / objective.regularisation()
                   : 0.0) {
    for (Index j = 0; j < batch_; ++j) rows_[static_cast<std::size_t>(j)] = draw(0, j);
    if (objective.data().means().sparse()) weights_.setZero(1, objective.n_features());
    step_.kept.resize(1);
    step_.centred.resize(1);
    step_.radius = radius(objective);
  }

  Index steps_per_epoch() const { return (objective_.n_samples() + batch_ - 1) / batch_; }
  Index steps() const { return steps_; }

  void run(Index until, Checkpoint& checkpoint) {
    while (steps_ < until) {
      checkpoint();
      step();
    }
  }

  /// Writes the coefficients, and the intercept the walk itself has.
  void result(LinearModel& model) {
    const bool averaged = settings_.averaging == Averaging::weighted && steps_ > 0;
    at_.settle();
    model.coef.row(problem_) = averaged ? at_.average : at_.coef;
    model.intercept(problem_) = (averaged ? average_b_ : b_) - model.coef.row(problem_).dot(scale_.centre);
  }

 private:
  /// No minimiser lies beyond it: lam |w|^2 <= sum c theta margin for homogeneous losses, lam |w|^2 / 2 <= J(0) for all
  /// (spec C.1).
  static double radius(const LocalObjective& objective) {
    const LossTraits& traits = objective.loss()->traits();
    const double square =
        traits.homogeneous ? traits.steepest * objective.largest_offset() : 2.0 * objective.value_at_origin();
    return std::sqrt(square / objective.regularisation());
  }

  /// How much steeper than the hinge's the gradient may become over a step.
  static double steepness(const LocalObjective& objective) {
    const double sharpest = objective.loss()->traits().sharpest;
    return std::isfinite(sharpest) ? std::max(1.0, sharpest) : 1.0;
  }

  bool all_rows() const { return batch_ == objective_.n_samples(); }

  Index draw(Index step, Index j) const {
    if (all_rows()) return j;
    return sgd_row(settings_.seed, static_cast<std::uint64_t>(step * batch_ + j), objective_.n_samples());
  }

  void add_batch() {
    const Index block = std::min(batch_, objective_.data().block_rows());
    const double scale = all_rows() ? 1.0 : static_cast<double>(objective_.n_samples()) / static_cast<double>(batch_);
    support_.find(objective_.data(), rows(0, batch_), !objective_.all_certain());
    const Matrix& weights = at_.weights(support_, weights_);
    intercept_(0) = b_ - at_.along_centre(0);
    gradient_.intercept.setZero();
    for (Index begin = 0; begin < batch_; begin += block) {
      const Index count = std::min(block, batch_ - begin);
      objective_.add_block(rows(begin, count), problem_, weights, intercept_, scale, work_, gradient_);
    }
  }

  /// Some of the batch.
  Rows rows(Index begin, Index count) const {
    return all_rows() ? Rows{begin, count} : Rows{0, count, rows_.data() + begin};
  }

  void step() {
    add_batch();
    fetch_next();
    const double lam = objective_.regularisation();
    const auto t = static_cast<double>(++steps_);
    const double eta = 1.0 / (lam * (t + delay_));
    const double slope = gradient_.intercept(0);
    const double shrunk = settings_.proximal ? 1.0 / (1.0 + eta * lam) : 1.0;
    step_.kept(0) = settings_.proximal ? shrunk : 1.0 - eta * lam;
    step_.centred(0) = shrunk * eta * slope;
    step_.rate = shrunk * eta;
    step_.share = settings_.averaging == Averaging::weighted ? 2.0 / (t + 1.0) : 0.0;
    at_.advance(support_, step_, gradient_.coef);
    support_.clear(gradient_.coef);
    if (objective_.fit_intercept()) b_ -= eta * slope;
    average_b_ += step_.share * (b_ - average_b_);
  }

  /// Chooses the next step's rows and has them brought into the cache while this step finishes.
  void fetch_next() {
    if (all_rows()) return;
    for (Index j = 0; j < batch_; ++j) {
      const Index row = draw(steps_ + 1, j);
      rows_[static_cast<std::size_t>(j)] = row;
      objective_.data().means().prefetch(row);
      objective_.data().covariances().prefetch(row);
    }
  }

  const LocalObjective& objective_;
  const SgdSettings& settings_;
  const Scale& scale_;
  Index problem_;
  Index batch_;
  LocalObjective::Workspace work_;
  Evaluation gradient_;  ///< by w 0 between steps
  Support support_;
  Iterates at_;
  Matrix weights_;  ///< of sparse examples: those in their columns
  GradientStep step_;
  double b_;  ///< intercept for centred means
  double average_b_ = 0.0;
  Vector intercept_ = Vector::Zero(1);
  std::vector<Index> rows_;
  double delay_;
  Index steps_ = 0;
};

void check_settings(const SgdSettings& settings) {
  check::require(settings.batch_size > 0, "batch_size", "must be positive");
  check::require(settings.max_steps > 0 || settings.max_epochs > 0, "max_epochs", "must be positive");
  check::require(settings.tolerance >= 0.0, "tolerance", "must be >= 0");
}

/// Raises the bound of the averaged model by a batch method. Dual variables of a point at a distance r from the minimum
/// lose |H r|^2 / (2 lam) where J itself gains r'Hr / 2: the worse the condition of the problem, the more a bound from
/// them hides of how good the model is. So where more than a tenth of the gap is that of the bound, a batch method goes
/// on from the best model known, for half as many passes as the walk has taken.
/// \param best the best model and bound known.
void tighten(const LocalObjective& objective, const Moments& about, const Result& result, double tolerance,
             Result& best) {
  constexpr double little = 0.1;
  bool due = false;
  for (Index k = 0; k < objective.n_problems(); ++k) {
    best.take(result.only(k), k);
    const double open = result.objective(k) - best.lower_bound(k);
    const double of_bound = best.objective(k) - best.lower_bound(k);
    due = due || (open > tolerance * best.lower_bound(k) && of_bound > little * open);
  }
  BatchSettings settings;
  settings.max_iterations = result.epochs / 2;
  settings.tolerance = little * tolerance;
  if (!due || settings.max_iterations == 0) return;
  const bool in_the_dual = objective.kinked_everywhere() && supports_dual_coordinate(objective);
  const Result other = (in_the_dual ? run_dual_coordinate : run_lbfgs)(objective, about, best.model, settings);
  for (Index k = 0; k < objective.n_problems(); ++k) best.take(other.only(k), k);
}

}  // namespace

Index sgd_row(std::uint64_t seed, std::uint64_t draw, Index n_rows) {
  const std::uint64_t u = mix(mix(seed + golden) + (draw + 1) * golden);
  return static_cast<Index>(static_cast<double>(u >> 11U) * 0x1p-53 * static_cast<double>(n_rows));
}

Result minimize(const LocalObjective& objective, const LinearModel& start, const SgdSettings& settings) {
  check_settings(settings);
  check_start(objective, start);
  require_convex(objective);
  const Index n_problems = objective.n_problems();
  const Moments about = objective.moments();
  const bool weighted = settings.averaging == Averaging::weighted;
  const Scale scale{weighted ? about.centre : Vector::Zero(objective.n_features()), about.variance.sum() + 1.0};

  std::vector<Walk> walks;
  walks.reserve(static_cast<std::size_t>(n_problems));
  for (Index k = 0; k < n_problems; ++k) walks.emplace_back(objective, settings, scale, k, start);
  const Index per_epoch = walks.front().steps_per_epoch();
  const Index last = settings.max_steps > 0 ? settings.max_steps : settings.max_epochs * per_epoch;

  const BatchSettings judgement{last, settings.tolerance, {}};
  Result best;
  Result result;
  result.model = start;
  for (Index target = std::min(per_epoch, last);; target = std::min(2 * target, last)) {
    run_tasks(n_problems, objective.execution(), [&](Index k, int, Checkpoint& checkpoint) {
      walks[static_cast<std::size_t>(k)].run(target, checkpoint);
    });
    for (Walk& walk : walks) walk.result(result.model);
    const Vector exact = objective.exact_intercept(result.model.coef, result.model.intercept);
    if (weighted) result.model.intercept = exact;
    result.steps = target;
    result.epochs = (target + per_epoch - 1) / per_epoch;
    certify(objective, objective.lower_bound(result.model.coef, exact), judgement, result);
    if (best.objective.size() == 0) best = result;
    tighten(objective, about, result, settings.tolerance, best);
    result.lower_bound = best.lower_bound;
    settle(objective, about, judgement, result);
    if (settings.report) {
      settings.report({result.epochs, result.objective.maxCoeff(), result.suboptimality.maxCoeff()});
    }
    if (result.status == Status::converged || target == last) return result;
  }
}

}  // namespace halosvm
