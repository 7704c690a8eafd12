// Parameters of a kernel come in, features in which its bandwidth is 1 and its rule go out.

#include "kernel/scaling.hpp"

#include "halosvm/core/check.hpp"

#include <cmath>
#include <vector>

namespace halosvm::kernels {

void check_kernel(const ExpectedKernel& kernel, Index n_features) {
  const Index size = kernel.gamma.size();
  if (size != 1) check::same_size("gamma", size, "X", n_features, "features");
  for (Index k = 0; k < size; ++k) check::positive("gamma", kernel.gamma(k));
  check::require(std::isfinite(kernel.coef0), "coef0", "must be finite");
  if (kernel.kind != KernelKind::polynomial) return;
  check::require(1 <= kernel.degree && kernel.degree <= 3, "degree",
                 "is " + std::to_string(kernel.degree) + "; closed forms are known for 1, 2 and 3");
}

Vector scale_of(const ExpectedKernel& kernel) {
  switch (kernel.kind) {
    case KernelKind::rbf:
      return (2.0 * kernel.gamma).cwiseSqrt();
    case KernelKind::laplacian:
      return kernel.gamma;
    case KernelKind::polynomial:
      return kernel.gamma.cwiseSqrt();
    case KernelKind::linear:
      break;
  }
  return Vector::Ones(1);
}

Vector centre_of(const ExpectedKernel& kernel, const Gaussians& data) {
  Vector low = Vector::Zero(data.n_features());
  const Index n = data.n_samples();
  if (n == 0 || kernel.kind == KernelKind::polynomial || kernel.kind == KernelKind::linear) return low;
  std::vector<double> scratch(static_cast<std::size_t>(data.n_features()));
  low = data.means().block({0, 1}, scratch.data()).row(0).transpose();
  Vector high = low;
  for (Index i = 1; i < n; ++i) {
    const auto mean = data.means().block({i, 1}, scratch.data()).row(0).transpose();
    low = low.cwiseMin(mean);
    high = high.cwiseMax(mean);
  }
  return low.cwiseMax(0.0) + high.cwiseMin(0.0);
}

std::unique_ptr<PairRule> make_rule(const ExpectedKernel& kernel, const Side& x, const Side& y) {
  switch (kernel.kind) {
    case KernelKind::laplacian:
      return make_laplacian_rule(x, y);
    case KernelKind::polynomial:
      return make_polynomial_rule(x, y, kernel.degree, kernel.coef0);
    case KernelKind::linear:
      return make_polynomial_rule(x, y, 1, 0.0);
    case KernelKind::rbf:
      break;
  }
  return make_rbf_rule(x, y);
}

}  // namespace halosvm::kernels
