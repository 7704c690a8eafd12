// Covariances of a kind, for those that know no classes.

#include "gaussians/covariances/make.hpp"

#include "halosvm/core/check.hpp"
#include "halosvm/gaussians/covariances/columns.hpp"
#include "halosvm/gaussians/covariances/diagonal.hpp"
#include "halosvm/gaussians/covariances/full.hpp"
#include "halosvm/gaussians/covariances/isotropic.hpp"
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

std::shared_ptr<const Covariances> isotropic_covariances(const ArrayView& variances, Index n_features) {
  return std::make_shared<IsotropicCovariances>(variances, n_features);
}

std::shared_ptr<const Covariances> diagonal_covariances(const ArrayView& variances) {
  return std::make_shared<DiagonalCovariances>(variances);
}

std::shared_ptr<const Covariances> full_covariances(const ArrayView& matrices, Index n_samples) {
  return std::make_shared<FullCovariances>(matrices, n_samples);
}

std::shared_ptr<const Covariances> low_rank_covariances(const ArrayView& factors, const Index* offsets, Index n_samples,
                                                        Index n_features, const ArrayView& diagonal) {
  if (offsets == nullptr) return std::make_shared<LowRankCovariances>(factors, n_samples, n_features, diagonal);
  return std::make_shared<LowRankCovariances>(factors, offsets, n_samples, n_features, diagonal);
}

}  // namespace halosvm
