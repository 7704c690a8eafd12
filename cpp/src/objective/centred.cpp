// Data far from the origin, seen from their centre.

#include "objective/centred.hpp"

#include <memory>

namespace halosvm {

bool Centred::pays(const LocalObjective& objective, const Moments& about, double far) {
  if (!objective.fit_intercept()) return false;
  constexpr Index little = Index{1} << 20;  // numbers
  const bool small = objective.n_samples() * objective.n_features() <= little;
  const double constant = small ? 0.0 : 1e-12;  // rounding alone gives a constant feature a deviation
  const auto offset = about.centre.array().abs();
  const auto deviation = about.variance.array().sqrt();
  return (offset > far * deviation && deviation >= constant * offset).any();
}

Centred::Centred(const LocalObjective& objective, const Moments& about) : about_(about), objective_(objective) {
  const Gaussians& data = objective.data();
  const std::shared_ptr<const Means> means = data.means().seen_from(about.centre);
  centre_ = means->origin_from(data.means());
  about_.mean -= centre_;
  about_.centre -= centre_;
  objective_ = objective.on({means, data.shared_covariances()});
}

}  // namespace halosvm
