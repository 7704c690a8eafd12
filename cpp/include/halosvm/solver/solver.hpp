/// \file
/// What all solvers share: where they start, how they report, and how they end.
#pragma once

#include "halosvm/model/linear_model.hpp"
#include "halosvm/objective/objective.hpp"
#include "halosvm/core/types.hpp"

#include <cstdint>
#include <functional>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// How a run ended.
enum class Status : std::uint8_t {
  converged,       ///< The certified suboptimality of every problem is within the tolerance.
  zero_model,      ///< Converged, and some objective is least at w = 0: all scores are alike (spec A.6).
  stationary,      ///< The loss is not convex, and no step of the search leads down; no bound is known.
  max_iterations,  ///< The allowed number of iterations ended first.
  stalled          ///< Rounding, or a method that no longer got ahead, ended the search first.
};

/// Whether the tolerance is certified.
inline bool converged(Status status) { return status == Status::converged || status == Status::zero_model; }

/// Its name, and one sentence, for each status.
const char* name(Status status);
/// One sentence that says how a run ended.
const char* message(Status status);

/// How far a run is, reported after each certificate.
struct Progress {
  Index epochs;          ///< iterations so far
  double objective;      ///< largest J over the problems
  double suboptimality;  ///< largest certified (J - J*) / J* over the problems; infinite when nothing is known
};

/// How to search, where all examples are read in each iteration.
enum class Method : std::uint8_t {
  /// What suits the objective, chosen by measurement (bench/methods.py). L-BFGS needs 4 to 30 passes where examples are
  /// uncertain, 10 to 60 where there are very many for each feature, whose kinks together are nearly smooth, but
  /// hundreds where a tenth of fewer examples is certain, or where w can leave low-rank spreads behind (w dimensions
  /// against those of all factors together); interior points need 7 to 40 iterations there, of n_features / 8 passes
  /// each. So these go to interior points, others to L-BFGS, and those problems to interior points after it that have
  /// not converged in as many passes as take as long; smooth losses go on along the principal axes of their Hessians.
  /// Before all this, certain points of losses with kinks go through
  /// up to 400 passes of the dual coordinate method if their means are sparse, with fewer than 100 of them for each
  /// feature, if they are half as many as the features or fewer, or if C times the mean of |x|^2 is so small (at most
  /// 10, less where the others are quick) that 5 to 100 passes are enough; points and factors that span less than half
  /// of the features are then copied into their span, where the minimum lies. An objective that is not local, a sum
  /// over chunks or machines, goes to L-BFGS. A loss that is not convex is minimised in rounds of convex ones, to a
  /// point from where no round leads down, or, if it is smooth, by L-BFGS that begins at the minimum of a convex loss
  /// above it, or at a given model, to a point where the gradient vanishes.
  automatic,
  /// Limited-memory BFGS, for many features: one pass over the data for each step, for all problems side by side.
  lbfgs,
  /// A primal-dual interior-point method for the hinge and the expected hinge, exact for certain, nearly certain and
  /// uncertain examples alike, one problem after another. Works in memory of 8 to 9 numbers per example, 11 + 7 r more
  /// with factors of rank r, and a few n_features^2. It knows no start: it begins in the middle.
  interior_point,
  /// Coordinate ascent in the dual variables of certain examples, for losses that are linear or quadratic between kinks
  /// (LossTraits::certain): one row at a time, in random but repeatable order, so that a step takes time for what is
  /// stored of a row. For sparse means, many features, and small C. Each problem has one thread. It knows no start.
  dual_coordinate
};

/// The largest number of features for which a Hessian is worth its memory and time.
inline constexpr Index interior_point_features = 4000;

/// Settings of the solvers that read all examples in each iteration.
struct BatchSettings {
  Index max_iterations = 1000;                  ///< of passes for L-BFGS
  double tolerance = 1e-6;                      ///< stop when the certified (J - J*) / J* of every problem is below
  std::function<void(const Progress&)> report;  ///< called on the calling thread after each iteration
  Method method = Method::automatic;            ///< how to search
};

/// What a solver found, and how good it is.
struct Result {
  LinearModel model;     ///< the best point that was found
  Vector objective;      ///< J for each problem
  Vector lower_bound;    ///< a number that J of the problem never falls below
  Vector suboptimality;  ///< certified upper bound on (J - J*) / J* for each problem; infinite when nothing is known,
                         ///< as for a loss that is not convex
  Index steps = 0;       ///< steps taken for the problem that took most
  Index epochs = 0;      ///< the same in passes over the data, rounded up
  Status status = Status::stalled;  ///< how the run ended

  /// Problem \p k alone.
  Result only(Index k) const;
  /// Takes the model of \p one for problem \p k if it is better, or named as the zero model, and the better bound.
  void take(const Result& one, Index k);
};

/// Throws std::invalid_argument unless the loss is convex, as every method but the automatic one needs it.
void require_convex(const Objective& objective);

/// Throws std::invalid_argument unless the start fits the objective and is finite.
void check_start(const Objective& objective, const LinearModel& start);

/// Fills in suboptimality and status from objective, lower bound and steps.
/// \param error how far the objective of each problem may be from its true value.
void judge(const BatchSettings& settings, const Vector& error, Result& result);
/// The same where the objective is exact to rounding.
void judge(const BatchSettings& settings, Result& result);

/// Evaluates result.model: fills in objective, lower bound, suboptimality and status.
/// \param lower a bound on J* from below for each problem.
void certify(const Objective& objective, const Vector& lower, const BatchSettings& settings, Result& result);

/// Minimises all problems of the objective. A minimum at w = 0, which no gradient shows, is proved separately.
/// \param start where to begin; coefficients of an earlier fit save passes.
/// \throws std::invalid_argument when the start does not fit, or the method does not know the loss.
Result minimize(const Objective& objective, const LinearModel& start, const BatchSettings& settings);

}  // namespace halosvm
HALOSVM_PUBLIC_END
