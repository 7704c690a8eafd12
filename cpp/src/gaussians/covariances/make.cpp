// Covariances of a kind, for those that know no classes.

#include "halosvm/gaussians/covariances.hpp"
#include "halosvm/core/check.hpp"
#include "halosvm/gaussians/covariances/columns.hpp"
#include "halosvm/gaussians/covariances/low_rank.hpp"
#include "halosvm/gaussians/covariances/norm_spread.hpp"
#include "halosvm/gaussians/covariances/scaled.hpp"
#include "halosvm/gaussians/covariances/zero.hpp"

#include <utility>

namespace halosvm {

std::shared_ptr<const Covariances> no_covariances(Index n_samples, Index n_features) {
  return std::make_shared<ZeroCovariances>(n_samples, n_features);
}

std::shared_ptr<const Covariances> scaled_covariances(std::shared_ptr<const Covariances> base, double factor) {
  return std::make_shared<ScaledCovariances>(std::move(base), factor);
}

std::shared_ptr<const Covariances> in_norm(std::shared_ptr<const Covariances> base, double norm) {
  check::require(norm >= 1.0, "norm", "is " + check::text(norm) + "; it must be >= 1");
  if (check::given(base, "covariances")->certain() || norm == 2.0) return base;
  if (const auto* few = dynamic_cast<const ColumnsCovariances*>(base.get())) {
    return std::make_shared<ColumnsCovariances>(std::make_shared<NormSpread>(few->inner(), norm), few->columns(),
                                                few->n_features());
  }
  return std::make_shared<NormSpread>(std::move(base), norm);
}

std::shared_ptr<const Covariances> low_rank_covariances(const ArrayView& factors, const Index* offsets, Index n_samples,
                                                        Index n_features) {
  return std::make_shared<LowRankCovariances>(factors, offsets, n_samples, n_features);
}

}  // namespace halosvm
