// Quantiles of the normal law.

#include "halosvm/core/normal.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm {

double normal_upper_quantile(double p) {
  if (p >= 0.5) return 0.0;
  // Phi(-t) is about exp(-t^2 / 2) / (t sqrt(2 pi) + 2): two rounds of solving for t come within a few per cent.
  const double log_p = std::log(p);
  double t = std::sqrt(std::max(0.0, -2.0 * (log_p + 0.69314718055994531)));
  for (int round = 0; round < 2; ++round) {
    t = std::sqrt(std::max(0.0, -2.0 * (log_p + std::log(2.5066282746310002 * t + 2.0))));
  }
  for (int round = 0; round < 4; ++round) {
    t = std::clamp(t, 0.0, normal_tail_end);
    const NormalTail tail = normal_tail(t);
    const double newton = (tail.upper - p) / tail.density;
    const double step = newton / (1.0 - 0.5 * t * newton);
    t += step;
    if (std::abs(step) <= 1e-15 * t) break;
  }
  return std::clamp(t, 0.0, normal_tail_end);
}

}  // namespace halosvm
