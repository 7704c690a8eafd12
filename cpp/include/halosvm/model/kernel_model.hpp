/// \file
/// The fitted kernel machine: scores f_p(X) = sum_j c_pj k(X, Z_j) + b_p of Gaussians by their expected kernels (spec
/// H) with the support examples Z_j, and their spread over uncertain inputs.
#pragma once

#include "halosvm/kernel/kernel.hpp"

#include <memory>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Coefficients of the support examples and intercepts of n_scores scores.
struct KernelModel {
  ExpectedKernel kernel;                    ///< k, between Gaussians
  double tau = 0.0;                         ///< width of the level-2 kernel of k; 0 for k itself
  std::shared_ptr<const Mixtures> support;  ///< the Z_j; of a model that was read also the memory that they view
  Matrix coefficients;                      ///< the c_pj, n_scores x n_support
  Vector intercept;                         ///< the b_p, n_scores
};

/// out(i, p) = f_p(X_i), of an uncertain example the mean score unless the kernel is normalised or of level 2. Takes
/// memory for n_samples n_support numbers.
/// \param out n_samples x n_scores.
/// \throws std::invalid_argument as gram(), for sizes that do not agree, and where a score overflows.
void decision_function(const KernelModel& model, const Mixtures& X, MatrixRef out, const Execution& execution);

/// out(i, p) = the standard deviation of f_p(x) over x ~ X_i (spec K.10), in closed form: for the kernel rbf, and, of
/// Gaussians and unless they are normalised, linear and polynomial of degree 1 and 2.
/// \param out n_samples x n_scores.
/// \throws std::invalid_argument likewise, and for other kernels.
void decision_std(const KernelModel& model, const Mixtures& X, MatrixRef out, const Execution& execution);

}  // namespace halosvm
HALOSVM_PUBLIC_END
