// L-BFGS: evaluations of an objective come in, models and bounds of all problems go out.

#include "solver/lbfgs/descent.hpp"
#include "solver/lbfgs/samples.hpp"
#include "solver/method.hpp"
#include "solver/principal_axes.hpp"
#include "objective/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace halosvm {
namespace {

constexpr double first_floor = 0.03;  ///< after a sample, which says no more of J than what this adds to it
constexpr double deepest_fall = 0.1;  ///< of a floor, so that the next problem is not far from the last
constexpr Index few_passes = 20;      ///< a minimum with small but finite scores is certified before
constexpr Index patience = 250;       ///< passes after which kinks are taken for the reason why there is no end

/// Where examples are many times the features, the problem is first solved roughly for some of them, spread over the
/// data (50 for each feature, at most a quarter of all; more where that costs about a pass), after some of these. Their
/// Hessian there (for several problems one matrix of second moments) then models that of all: 3 to 10 passes take the
/// rest of the way, however correlated the features are. Few examples are scaled by a diagonal model, lam + kappa
/// (variance of the feature), kappa = sum_i c_i psi_s / s, and take 8 to 30 passes. The means are centred implicitly
/// (spec C.2).
///
/// Every pass yields a certificate: the dual variables of its gradient, scaled down on the heavier side (spec A.8).
/// Where examples are certain, a spread floor is lowered step by step (spec A.7); the certificate is the dual bound of
/// the hinge itself, which the floor only enters in second order. A minimum at w = 0 is proved separately.
/// An objective whose examples are elsewhere takes evaluations alone, 8 to 30 and some for intercepts.
class Lbfgs {
 public:
  Lbfgs(const Objective& objective, const Moments& about, const LinearModel& start, const BatchSettings& settings)
      : objective_(objective),
        settings_(settings),
        n_problems_(objective.n_problems()),
        d_(objective.n_features()),
        has_kinks_(objective.loss()->traits().kinked),
        rounding_(objective, about),
        centre_(about.centre),
        gradient_(n_problems_, d_),
        lower_(Vector::Constant(n_problems_, -infinity)),
        best_value_(Vector::Constant(n_problems_, infinity)),
        open_(best_value_),
        reached_(best_value_),
        at_zero_(objective.value_at_zero()),
        improved_(static_cast<std::size_t>(n_problems_), 0) {
    variance_.resize(d_ + 1);
    variance_ << about.variance.cwiseMax(1e-300), 1.0;
    for (Index k = 0; k < n_problems_; ++k) {
      Vector u(d_ + 1);
      u << start.coef.row(k).transpose(), start.intercept(k) + start.coef.row(k).dot(centre_);
      walks_.emplace_back(std::move(u), variance_, objective.regularisation());
    }
    floor_ = objective.has_many_kinks() ? 1.0 : 0.0;
  }

  /// Takes \p scale times a matrix as model of the Hessian of problem k.
  void precondition(Index k, std::shared_ptr<const CholeskyFactor> factor, double scale) {
    walk(k).precondition(std::move(factor), scale);
  }

  void begin_with(double floor) { floor_ = floor; }

  /// Takes models whose J is known: what is left to find is a bound.
  void prove(const Result& known) {
    best_value_ = known.objective;
    best_coef_ = known.model.coef;
    best_intercept_ = known.model.intercept;
    lower_ = known.lower_bound;
    at_zero_.setConstant(infinity);
  }

  /// Ends the search after so many passes unless it is near its end.
  void give_up_after(Index passes) { brief_ = passes; }

  /// Takes some of the rows, on which dual variables are moved until they are feasible.
  void balance_on(std::vector<Index> rows) {
    share_ = 0.0;
    for (const Index row : rows) share_ += objective_.local()->weight(row);
    if (share_ > 0.0 && objective_.fit_intercept()) {
      some_ = std::make_unique<LocalObjective>(objective_.local()->sampled(std::move(rows)));
    }
  }

  /// A model near the minimum: from where the next step would lower J by less than a share of it.
  LinearModel approach(double share) {
    enough_ = share;
    search();
    LinearModel model(n_problems_, d_);
    model.coef = best_coef_;
    model.intercept = best_intercept_;
    return model;
  }

  Result run() {
    search();
    Result result;
    result.model = LinearModel(n_problems_, d_);
    result.steps = pass_;
    result.epochs = pass_;
    result.model.coef = best_coef_;
    result.model.intercept = best_intercept_;
    result.objective = best_value_;
    result.lower_bound = lower_.cwiseMax(0.0);
    judge(settings_, result);
    if (floor_ > 0.0 || result.status != Status::converged) {  // J, or the best intercept, is still to be evaluated
      result.model.intercept = objective_.exact_intercept(best_coef_, best_intercept_, 0.0);
      certify(objective_, Vector(result.lower_bound), settings_, result);
    }
    return result;
  }

 private:
  void search() {
    bool balanced = !objective_.fit_intercept();  // the trial points have the exact intercept of their coefficients
    for (pass_ = 1;; ++pass_) {
      evaluate();
      if (settings_.report) settings_.report({pass_, best_value_.maxCoeff(), worst_gap()});
      if (pass_ >= settings_.max_iterations || all(&Lbfgs::at_rest) || gives_up() || !gets_ahead()) break;
      if (pass_ == 1 && leave_bad_starts()) continue;

      const bool near = all(&Lbfgs::near_optimum);
      const bool exhausted = all(&Lbfgs::exhausted);
      if (const double floor = due_floor(near, exhausted, balanced); floor != floor_) {
        lower_the_floor(floor);
      } else if (exhausted) {  // rounding ends the search
        break;
      } else {
        observe(near);
        if (floor_ == 0.0 && all(&Lbfgs::promises_little)) break;
        if (objective_.fit_intercept()) {
          balanced = near && !balanced;
          if (balanced) balance();
        }
        continue;
      }
      balanced = !objective_.fit_intercept();
    }
  }

  /// Whether another method is to go on: the last floors before the tolerance take few passes more.
  bool gives_up() const {
    constexpr double near = 10.0;
    constexpr Index few = 3;
    return pass_ >= brief_ && (pass_ >= few * brief_ || worst_gap() > near * settings_.tolerance);
  }

  /// A floor moves J by 0.4 of it at most.
  double smallest_floor() const { return std::clamp(settings_.tolerance * best_value_.minCoeff(), 1e-9, 1e-6); }

  /// Whether some problem has come nearer to its end in the last passes: its gap closed by a tenth, or, while there is
  /// none, its value fell.
  bool gets_ahead() {
    constexpr Index last = 500;
    for (Index k = 0; k < n_problems_; ++k) {
      const double open = lower_(k) > 0.0 ? best_value_(k) - lower_(k) : infinity;
      if (open > 0.9 * open_(k) && best_value_(k) > 0.9999 * reached_(k)) continue;
      open_(k) = open;
      reached_(k) = best_value_(k);
      ahead_ = pass_;
    }
    return pass_ - ahead_ < last;
  }

  /// What a floor adds to J and what it takes off the bound are both of second order in it: from the gap that it leaves
  /// follows the floor that leaves little enough.
  double next_floor() const {
    constexpr double cautious = 0.8;
    double gap = 0.0;
    for (Index k = 0; k < n_problems_; ++k) {
      if (!at_rest(k)) gap = std::max(gap, (least(k) - lower_(k)) / least(k));
    }
    return floor_ * std::clamp(cautious * std::sqrt(settings_.tolerance / gap), deepest_fall, 0.5);
  }

  /// Whether the floor can fall without the exact intercept: it falls far, and what the gradient's slope in b does to
  /// the gap that is left is little.
  bool falls_on() const {
    for (Index k = 0; k < n_problems_; ++k) {
      if (at_rest(k)) continue;
      const double certified = least(k) - lower_(k);
      const double left = least(k) - bound(k);
      if (certified > 2.0 * left || left > 2.0 * certified) return false;
    }
    return next_floor() == deepest_fall * floor_;
  }

  /// The floor to go on with.
  double due_floor(bool near, bool exhausted, bool balanced) const {
    if (floor_ == 0.0) {  // are some examples certain after all?
      return has_kinks_ && ((balanced && kinked()) || exhausted || pass_ == patience) ? 0.1 : 0.0;
    }
    if (floor_ <= smallest_floor()) return floor_;
    if (exhausted) return deepest_fall * floor_;
    return near && (balanced || falls_on()) ? next_floor() : floor_;
  }

  /// Another function from here on.
  void lower_the_floor(double floor) {
    floor_ = floor;
    for (Descent& walk : walks_) walk.restart();
  }

  bool all(bool (Lbfgs::*condition)(Index) const) const {
    for (Index k = 0; k < n_problems_; ++k) {
      if (!(this->*condition)(k)) return false;
    }
    return true;
  }

  bool any(bool (Lbfgs::*condition)(Index) const) const {
    for (Index k = 0; k < n_problems_; ++k) {
      if ((this->*condition)(k)) return true;
    }
    return false;
  }

  /// Whether the exact intercept of some problem is at a kink, where the gradient does not vanish.
  bool kinked() const {
    constexpr double no_slope = 1e-6;
    for (Index k = 0; k < n_problems_; ++k) {
      if (objective_.fit_intercept() && !vanishing(k) && std::abs(gradient_.intercept(k)) > no_slope) return true;
    }
    return false;
  }

  LinearModel trial_model() const {
    LinearModel model(n_problems_, d_);
    for (Index k = 0; k < n_problems_; ++k) {
      const Vector& u = walk(k).trial();
      model.coef.row(k) = u.head(d_).transpose();
      model.intercept(k) = objective_.fit_intercept() ? u(d_) - u.head(d_).dot(centre_) : 0.0;
    }
    return model;
  }

  void evaluate() {
    model_ = trial_model();
    objective_.evaluate(model_.coef, model_.intercept, floor_, gradient_);
    dual_w_ = objective_.dual_coef(model_.coef, gradient_, centre_);
    note_bounds(gradient_, dual_w_);
    if (best_coef_.size() == 0) {
      best_coef_ = model_.coef;
      best_intercept_ = model_.intercept;
    }
    for (Index k = 0; k < n_problems_; ++k) {
      if (!(gradient_.value(k) <= best_value_(k))) continue;  // a floored value is an upper bound of the true one
      const double towards_zero = best_value_(k) - at_zero_(k);
      if (gradient_.value(k) - at_zero_(k) <= 0.99 * towards_zero) improved_[static_cast<std::size_t>(k)] = pass_;
      best_value_(k) = gradient_.value(k);
      best_coef_.row(k) = model_.coef.row(k);
      best_intercept_(k) = model_.intercept(k);
    }
    if (some_ && any(&Lbfgs::nearly_certified)) balance_bounds();
  }

  void note_bounds(const Evaluation& at, const Matrix& dual_w) {
    for (Index k = 0; k < n_problems_; ++k) {
      const double bound = rounding_.bound(at, k, model_.coef.row(k).transpose(), dual_w.row(k).transpose());
      lower_(k) = std::max(lower_(k), bound);
    }
  }

  /// Whether only the slope in b keeps the point from being certified.
  bool nearly_certified(Index k) const {
    return gap(k) > settings_.tolerance && best_value_(k) <= (1.0 + settings_.tolerance) * bound(k);
  }

  /// Bounds from dual variables that are moved on some of the rows, to those of another intercept there, for which
  /// sum c theta y = 0: where the slope in b is small that costs the bound little, and a small part of a pass.
  void balance_bounds() {
    constexpr int most = 4;
    constexpr double curvature = 0.3;  // to begin with
    Evaluation stays(n_problems_, d_);
    some_->evaluate(model_.coef, model_.intercept, floor_, stays);
    const Vector wanted = stays.intercept - gradient_.intercept / share_;
    Vector before = stays.intercept;
    Vector step = (wanted - before) / curvature;
    Vector b = model_.intercept;
    Evaluation moved(n_problems_, d_);
    for (int i = 0; i < most; ++i) {
      b += step;
      some_->evaluate(model_.coef, b, floor_, moved);
      Evaluation balanced = gradient_;
      balanced.add(stays, -share_);
      balanced.add(moved, share_);
      note_bounds(balanced, objective_.dual_coef(model_.coef, balanced, centre_));
      bool done = true;
      for (Index k = 0; k < n_problems_; ++k) {
        const double rise = (moved.intercept(k) - before(k)) / step(k);
        step(k) = rise > 0.0 ? (wanted(k) - moved.intercept(k)) / rise : 0.0;
        done = done && !nearly_certified(k);
      }
      if (done) break;
      before = moved.intercept;
    }
  }

  /// From the gradient; a bound on J* only where the slope in b vanishes.
  double bound(Index k) const {
    const Evaluation& at = gradient_;
    return rounding_.bound({at.dual(k), at.dual_size(k), at.slope(k), at.square(k)}, dual_w_.row(k).transpose());
  }

  /// The value here, or a lower one that is known.
  double least(Index k) const { return std::min(gradient_.value(k), best_value_(k)); }

  /// Certified suboptimality of one problem, and of the worst.
  double gap(Index k) const {
    if (best_value_(k) == 0.0) return 0.0;  // the least there is
    return lower_(k) > 0.0 ? (best_value_(k) - lower_(k)) / lower_(k) : infinity;
  }
  double worst_gap() const {
    double worst = 0.0;
    for (Index k = 0; k < n_problems_; ++k) worst = std::max(worst, gap(k));
    return worst;
  }

  /// Whether, but for the intercept, the smooth problem of this floor is solved: to the tolerance, or to a tenth of the
  /// gap that the floor itself leaves.
  bool near_optimum(Index k) const {
    if (at_rest(k)) return true;
    if (!walk(k).leads(gradient_.value(k))) return false;  // the line search comes back from here
    if (walk(k).trial().head(d_).isZero(0.0) && pass_ < few_passes) return false;
    const double open = gradient_.coef.row(k).squaredNorm() / (2.0 * objective_.regularisation());
    return open <=
           std::max(0.5 * settings_.tolerance * gradient_.value(k), floor_ > 0.0 ? 0.1 * (least(k) - bound(k)) : 0.0);
  }

  /// Moves the walks on. Those that are near wait for the others: steps that only rounding decides would make results
  /// depend on the instruction set.
  void observe(bool all_near) {
    for (Index k = 0; k < n_problems_; ++k) {
      if (at_rest(k) || (near_optimum(k) && !all_near)) continue;
      Vector gradient(d_ + 1);
      gradient << gradient_.coef.row(k).transpose() - gradient_.intercept(k) * centre_, gradient_.intercept(k);
      walk(k).observe(gradient_.value(k), gradient, gradient_.curvature(k));
    }
  }

  /// Moves all walks to the exact intercept of where they are: from near by Newton's method.
  void balance() {
    constexpr double near = 1e-4;
    LinearModel model(n_problems_, d_);
    bool newton = floor_ == 0.0;
    for (Index k = 0; k < n_problems_; ++k) {
      const Vector& u = walk(k).at();
      model.coef.row(k) = u.head(d_).transpose();
      model.intercept(k) = u(d_) - u.head(d_).dot(centre_);
      newton = newton && walk(k).has_been_seen() &&
               std::abs(walk(k).gradient()(d_)) < near * std::min(1.0, walk(k).curvature());
    }
    Vector exact = model.intercept;
    if (newton) {
      for (Index k = 0; k < n_problems_; ++k) exact(k) -= walk(k).gradient()(d_) / walk(k).curvature();
    } else {
      exact = objective_.exact_intercept(model.coef, model.intercept, floor_);
    }
    for (Index k = 0; k < n_problems_; ++k) {
      Vector u = walk(k).at();
      u(d_) += exact(k) - model.intercept(k);
      walk(k).jump(u);
    }
  }

  const Descent& walk(Index k) const { return walks_[static_cast<std::size_t>(k)]; }
  Descent& walk(Index k) { return walks_[static_cast<std::size_t>(k)]; }

  /// Whether the scores have shrunk to nothing, or do no better than nothing: the gradient does not vanish there, since
  /// spreads have a kink at w = 0.
  bool vanishing(Index k) const {
    constexpr double nothing = 1e-6;
    constexpr double little = 0.1;
    if (pass_ < few_passes || floor_ > 0.0 || !walk(k).has_moved()) return false;
    const double width = std::sqrt(walk(k).at().head(d_).cwiseAbs2().dot(variance_.head(d_)));
    if (width < nothing) return true;
    return best_value_(k) >= at_zero_(k) &&
           (width < little || pass_ - improved_[static_cast<std::size_t>(k)] >= few_passes);
  }

  /// Whether a problem needs no more steps. Under strong regularisation even w = 0 may be within the tolerance, but it
  /// tells nothing about the classes: some steps are spent on doing better.
  bool at_rest(Index k) const {
    const bool certified = gap(k) <= settings_.tolerance;
    if (best_value_(k) == 0.0) return true;
    return (certified && (best_value_(k) < at_zero_(k) || pass_ >= few_passes)) || vanishing(k);
  }

  /// Begins at 0 where the start is worse than that; whether there was any.
  bool leave_bad_starts() {
    const double at_origin = objective_.value_at_origin();
    bool any = false;
    for (Index k = 0; k < n_problems_; ++k) {
      if (gradient_.value(k) <= at_origin) continue;
      walk(k).jump(Vector::Zero(d_ + 1));
      any = true;
    }
    return any;
  }

  /// Whether a run that only has to come near is near enough.
  bool promises_little(Index k) const { return at_rest(k) || walk(k).promise() <= enough_ * best_value_(k); }

  bool exhausted(Index k) const { return at_rest(k) || walk(k).exhausted(); }

  const Objective& objective_;
  const BatchSettings& settings_;
  Index n_problems_;
  Index d_;
  bool has_kinks_;
  Rounding rounding_;
  Index brief_ = std::numeric_limits<Index>::max() / 4;  ///< passes after which a search that is far from its end ends
  double enough_ = -1.0;  ///< share of J by which a step has to lower it, or < 0 to go on to the tolerance
  std::unique_ptr<LocalObjective> some_;  ///< that of some of the rows
  double share_ = 0.0;                    ///< of the weights that they have
  Index pass_ = 0;
  double floor_ = 0.0;
  Vector centre_;
  Vector variance_;
  std::vector<Descent> walks_;
  LinearModel model_;
  Evaluation gradient_;
  Matrix dual_w_;  ///< lam w - grad_w J, from the gradient
  Vector lower_;
  Vector best_value_;
  Vector open_;  ///< gap and value when a problem last came nearer to its end
  Vector reached_;
  Index ahead_ = 0;              ///< the pass in which any did
  Vector at_zero_;               ///< J(0)
  std::vector<Index> improved_;  ///< the last pass in which the best value came clearly nearer to that, or below
  Matrix best_coef_;
  Vector best_intercept_ = Vector::Zero(n_problems_);
};

/// Gives a run the floor and the matrix of a sample that has been solved.
void begin_after(const LocalObjective& sample, const Moments& about, const LinearModel& model, Lbfgs& run) {
  if (sample.has_many_kinks()) run.begin_with(first_floor);
  const HessianModel hessian(sample, about, model);
  if (hessian.factor == nullptr) return;
  for (Index k = 0; k < sample.n_problems(); ++k) run.precondition(k, hessian.factor, hessian.scale(k));
}

/// A run that starts from the solution for some of the rows, and that from one for some of these.
Lbfgs prepared(const LocalObjective& objective, const Moments& about, const LinearModel& start,
               const BatchSettings& settings) {
  std::vector<LocalObjective> samples;
  while (true) {
    const LocalObjective& all = samples.empty() ? objective : samples.back();
    const Index size = sample_size(all);
    if (size == 0) break;
    std::vector<Index> rows = spread_rows(all, size);
    if (!has_all_classes(all, rows)) break;
    samples.push_back(all.sampled(std::move(rows)));
  }
  BatchSettings rough;
  rough.max_iterations = 30;
  rough.tolerance = std::max(settings.tolerance, 1e-3);
  LinearModel model = start;
  for (std::size_t i = samples.size(); i-- > 0;) {
    Lbfgs run(samples[i], about, model, rough);
    if (i + 1 < samples.size()) begin_after(samples[i + 1], about, model, run);
    const auto size = static_cast<double>(samples[i].n_samples());
    model = run.approach(0.1 * static_cast<double>(objective.n_features()) / size);
  }
  Lbfgs run(objective, about, model, settings);
  if (samples.empty()) return run;
  begin_after(samples.front(), about, model, run);
  constexpr Index few = 512;
  constexpr Index part = 64;  // of all: a few looks at them take a fraction of a pass
  const Index n = objective.n_samples();
  if (n >= 8 * few) run.balance_on(spread_rows(objective, std::max(few, n / part)));
  return run;
}

}  // namespace

Result run_lbfgs(const LocalObjective& objective, const Moments& about, const LinearModel& start,
                 const BatchSettings& settings) {
  return prepared(objective, about, start, settings).run();
}

Result run_lbfgs_briefly(const LocalObjective& objective, const Moments& about, const LinearModel& start,
                         const BatchSettings& settings, Index enough) {
  Lbfgs run = prepared(objective, about, start, settings);
  run.give_up_after(enough);
  return run.run();
}

bool supports_newton(const LocalObjective& objective) {
  return !objective.loss()->traits().kinked && PrincipalAxes::fit(objective);
}

Result run_newton(const LocalObjective& problem, const Moments& about, const LinearModel& start,
                  const BatchSettings& settings) {
  constexpr Index few = 20;  // passes that a Hessian serves
  const PrincipalAxes axes(problem, problem.hessian(start.coef, start.intercept, about.centre));
  const LocalObjective& turned = axes.objective();
  const Moments there = turned.moments();
  Result best;
  best.model = axes.into(start);
  best.objective = Vector::Constant(1, infinity);
  best.lower_bound = Vector::Zero(1);
  while (best.steps < settings.max_iterations) {
    BatchSettings some = settings;
    some.max_iterations = std::min(few, settings.max_iterations - best.steps);
    if (settings.report) {
      some.report = [&settings, done = best.steps](const Progress& at) {
        settings.report({done + at.epochs, at.objective, at.suboptimality});
      };
    }
    Lbfgs run(turned, there, best.model, some);
    auto factor = std::make_shared<CholeskyFactor>();
    if (factor->compute(turned.hessian(best.model.coef, best.model.intercept, there.centre))) {
      run.precondition(0, std::move(factor), 1.0);
    }
    const Result next = run.run();
    const double before = best.objective(0) - best.lower_bound(0);
    best.take(next, 0);
    best.steps += next.steps;
    judge(settings, best);
    const bool ahead = best.objective(0) - best.lower_bound(0) <= 0.5 * before;
    if (!ahead || best.status == Status::converged) break;
  }
  best.epochs = best.steps;
  best.model = axes.out_of(best.model);
  certify(problem, Vector(best.lower_bound), settings, best);
  return best;
}

Result run_lbfgs_anywhere(const Objective& objective, const Moments& about, const LinearModel& start,
                          const BatchSettings& settings) {
  return Lbfgs(objective, about, start, settings).run();
}

Result run_lbfgs_for_a_proof(const Objective& objective, const Moments& about, const Result& known,
                             const BatchSettings& settings, double floor) {
  Lbfgs run(objective, about, known.model, settings);
  run.begin_with(floor);
  run.prove(known);
  return run.run();
}

}  // namespace halosvm
