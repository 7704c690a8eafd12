/// \file
/// Stochastic gradient descent on mini-batches: Algorithm 1 of SVM-GSU (Tzelepis, Mezaris and Patras, 2018), corrected,
/// and with the proximal step of the robust machine (Couellan and Jan, 2017; spec G.1).
#pragma once

#include "halosvm/objective/local_objective.hpp"
#include "halosvm/solver/solver.hpp"

#include <cstdint>
#include <functional>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// What becomes of the iterates.
enum class Averaging : std::uint8_t {
  /// Centred means, delayed step size 1 / (lam (t + t0)), iterates averaged with weights proportional to t, and the
  /// exact intercept at the end (spec C.3).
  weighted,
  /// The published schedule to the letter: step size 1 / (lam t), and the last iterate as it is.
  none
};

/// Settings of stochastic gradient descent.
struct SgdSettings {
  Index batch_size = 32;    ///< examples in a step
  Index max_epochs = 100;   ///< passes over the data (steps times batch size over n_samples)
  Index max_steps = 0;      ///< when positive, it counts instead of max_epochs
  double tolerance = 1e-2;  ///< stop when the certified (J - J*) / J* of every problem is below; 0 never stops early
  Averaging averaging = Averaging::weighted;    ///< what becomes of the iterates
  std::uint64_t seed = 0;                       ///< of the choice of examples
  std::function<void(const Progress&)> report;  ///< called on the calling thread after each certificate
  bool proximal = false;                        ///< the regulariser's part of a step is its minimum: w / (1 + eta lam)
};

/// Minimises the objective from \p start. Certificates are computed after 1, 2, 4, 8, ... passes, with the bound of the
/// model's own dual variables or, where that is much looser than the model is good, one that a batch method finds in up
/// to half as many passes. One seed gives one result, whatever the number of threads; problems run on different
/// threads.
/// \throws std::invalid_argument for settings or a start that make no sense, Stopped when the caller stops the run.
Result minimize(const LocalObjective& objective, const LinearModel& start, const SgdSettings& settings);

/// The row that draw \p draw of a run reads: a hash of (seed, draw) scaled to 0 ... n_rows - 1. Any draw can be had
/// without the ones before it, so rows can be fetched ahead and other languages can walk the same path.
Index sgd_row(std::uint64_t seed, std::uint64_t draw, Index n_rows);

}  // namespace halosvm
HALOSVM_PUBLIC_END
