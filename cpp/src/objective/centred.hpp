/// \file
/// Data far from the origin: the same problem with means seen from their centre, where scores keep their digits.
/// Private to the solvers.
#pragma once

#include "halosvm/model/linear_model.hpp"
#include "halosvm/objective/local_objective.hpp"

namespace halosvm {

class Centred {
 public:
  /// Whether the intercept is free and some feature is more than \p far deviations from 0.
  static bool pays(const LocalObjective& objective, const Moments& about, double far);

  Centred(const LocalObjective& objective, const Moments& about);
  Centred(const Centred&) = delete;
  Centred& operator=(const Centred&) = delete;

  /// The problem seen from the centre, which lives as long as this, and its moments.
  const LocalObjective& objective() const { return objective_; }
  const Moments& about() const { return about_; }

  /// The same scores for the means as they are seen from the centre, and back.
  LinearModel into(const LinearModel& model) const { return seen_from(model, centre_); }
  LinearModel out_of(const LinearModel& model) const { return seen_from(model, -centre_); }

 private:
  Vector centre_;
  Moments about_;
  LocalObjective objective_;
};

}  // namespace halosvm
