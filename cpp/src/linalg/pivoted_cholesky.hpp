/// \file
/// A factor of a positive semi-definite matrix that keeps apart what is large and what is small in it.
#pragma once

#include "halosvm/core/types.hpp"

namespace halosvm::linalg {

/// Returns F with F F' = S, d x rank, by Cholesky's method, the largest pivot first. A pivot that is no more than the
/// rounding of what was taken from it counts as 0: however large an S of low rank is, so many columns does F have. Each
/// entry of F F' is that of S up to roundings of sqrt(S_kk S_ll), for small k and l beside large ones too.
/// \param S positive semi-definite but for rounding; only its lower triangle is read.
Eigen::MatrixXd pivoted_cholesky(const Eigen::Ref<const Eigen::MatrixXd>& S);

}  // namespace halosvm::linalg
