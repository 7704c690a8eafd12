/// \file
/// Covariances of a kind by the arrays that it stores, which must outlive them, for those that know no classes.
#pragma once

#include "halosvm/gaussians/covariances.hpp"

#include <memory>

namespace halosvm {

/// Variances n_samples x 1.
std::shared_ptr<const Covariances> isotropic_covariances(const ArrayView& variances, Index n_features);
/// Variances n_samples x n_features.
std::shared_ptr<const Covariances> diagonal_covariances(const ArrayView& variances);
/// Matrices one below another.
std::shared_ptr<const Covariances> full_covariances(const ArrayView& matrices, Index n_samples);
/// Factors one below another, or, with cumulative ranks, one after another; with a diagonal unless that is empty.
std::shared_ptr<const Covariances> low_rank_covariances(const ArrayView& factors, const Index* offsets, Index n_samples,
                                                        Index n_features, const ArrayView& diagonal);

}  // namespace halosvm
