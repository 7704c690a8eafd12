/// \file
/// The kernels of Eigen's matrix products, compiled once, in products.cpp, instead of in every file that multiplies
/// matrices. It is precompiled, so that no file needs to include it.
#pragma once

#include <Eigen/Core>

// These names are Eigen's own business: with any other version, files compile the kernels they use, as programs do.
#if EIGEN_VERSION_AT_LEAST(3, 4, 0) && !EIGEN_VERSION_AT_LEAST(3, 4, 90)

namespace halosvm::linalg {

using ProductTraits = Eigen::internal::gebp_traits<double, double>;
using ProductOut = Eigen::internal::blas_data_mapper<double, Eigen::Index, Eigen::ColMajor, Eigen::Unaligned, 1>;
template <int order>
using ProductIn = Eigen::internal::const_blas_data_mapper<double, Eigen::Index, order>;

}  // namespace halosvm::linalg

// NOLINTBEGIN(bugprone-macro-parentheses)
#define HALOSVM_PACK_KERNELS(declare, order)                                                                  \
  declare struct Eigen::internal::gemm_pack_lhs<                                                              \
      double, Eigen::Index, halosvm::linalg::ProductIn<order>, halosvm::linalg::ProductTraits::mr,            \
      halosvm::linalg::ProductTraits::LhsProgress, halosvm::linalg::ProductTraits::LhsPacket4Packing, order>; \
  declare struct Eigen::internal::gemm_pack_rhs<double, Eigen::Index, halosvm::linalg::ProductIn<order>,      \
                                                halosvm::linalg::ProductTraits::nr, order>;                   \
  declare struct Eigen::internal::general_matrix_vector_product<                                              \
      Eigen::Index, double, halosvm::linalg::ProductIn<order>, order, false, double,                          \
      halosvm::linalg::ProductIn<order == Eigen::ColMajor ? Eigen::RowMajor : Eigen::ColMajor>, false>;       \
  declare struct Eigen::internal::general_matrix_matrix_product<Eigen::Index, double, order, false, double,   \
                                                                Eigen::ColMajor, false, Eigen::ColMajor, 1>;  \
  declare struct Eigen::internal::general_matrix_matrix_product<Eigen::Index, double, order, false, double,   \
                                                                Eigen::RowMajor, false, Eigen::ColMajor, 1>;

#define HALOSVM_PRODUCT_KERNELS(declare)                                                                              \
  declare struct Eigen::internal::gebp_kernel<double, double, Eigen::Index, halosvm::linalg::ProductOut,              \
                                              halosvm::linalg::ProductTraits::mr, halosvm::linalg::ProductTraits::nr, \
                                              false, false>;                                                          \
  HALOSVM_PACK_KERNELS(declare, Eigen::ColMajor)                                                                      \
  HALOSVM_PACK_KERNELS(declare, Eigen::RowMajor)
// NOLINTEND(bugprone-macro-parentheses)

HALOSVM_PRODUCT_KERNELS(extern template)

#endif
