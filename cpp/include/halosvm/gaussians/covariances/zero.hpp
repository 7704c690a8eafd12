/// \file
/// S_i = 0: certain points.
#pragma once

#include "halosvm/gaussians/covariances.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Examples without errors, of which nothing is stored or read.
class ZeroCovariances final : public Covariances {
 public:
  /// From n_samples and n_features.
  using Covariances::Covariances;

  const char* kind() const override { return "zero"; }
  bool certain() const override { return true; }
  Index row_bytes() const override { return 0; }
  Index scratch_size(const BlockShape& /*shape*/) const override { return 0; }
  void bilinear(const Rows& /*rows*/, const ConstMatrixRef& /*W*/, const ConstMatrixRef& /*V*/, MatrixRef out,
                double* /*scratch*/) const override {
    out.setZero();
  }
  void add_weighted_products(const Rows& /*rows*/, const ConstMatrixRef& /*a*/, const ConstMatrixRef& /*W*/,
                             MatrixRef /*sum*/, double* /*scratch*/) const override {}
  void products(const Rows& /*rows*/, const ConstVectorRef& /*w*/, MatrixRef out, double* /*scratch*/) const override {
    out.setZero();
  }
  void add_weighted_matrices(const Rows& /*rows*/, const ConstVectorRef& /*a*/, MatrixRef /*sum*/,
                             double* /*scratch*/) const override {}
  void add_weighted_diagonals(const Rows& /*rows*/, const ConstVectorRef& /*a*/, VectorRef /*sum*/,
                              double* /*scratch*/) const override {}
  void prefetch(Index /*row*/) const override {}
  void check(const std::string& /*argument*/, const Execution& /*execution*/) const override {}
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
