// Mixtures of Gaussians: their checks, and the moments of an example.

#include "halosvm/gaussians/mixtures.hpp"

#include "halosvm/core/check.hpp"

#include <cmath>

namespace halosvm {

Mixtures::Mixtures(const Gaussians& components, const Index* offsets, Index n_samples, const double* weights)
    : components_(components), offsets_(offsets), weights_(weights), n_samples_(n_samples) {
  constexpr double rounding = 1e-6;  // of weights in float32
  check::require(n_samples >= 0, "n_samples", "is negative");
  check::given(weights, "weights");
  check::require(check::given(offsets, "offsets")[0] == 0, "offsets", "must begin with 0");
  check::same_size("offsets", offsets[n_samples], "components", components.n_samples(), "rows");
  for (Index i = 0; i < n_samples; ++i) {
    if (end(i) <= begin(i)) check::fail("offsets", "of mixture " + std::to_string(i) + " leave it no component");
  }
  for (Index i = 0; i < n_samples; ++i) {
    double sum = 0.0;
    for (Index a = begin(i); a < end(i); ++a) {
      if (!(weight(a) >= 0.0)) check::fail_at("weights", a, -1, weight(a), "it must be >= 0");
      sum += weight(a);
    }
    if (std::abs(sum - 1.0) <= rounding) continue;
    check::fail("weights", "of mixture " + std::to_string(i) + " have the sum " + check::text(sum) + "; it must be 1");
  }
}

}  // namespace halosvm
