/// \file
/// Covariances of any kind by factors, in which small features are not lost beside large ones. Private to the solvers.
#pragma once

#include "halosvm/gaussians/covariances.hpp"

#include <memory>
#include <vector>

namespace halosvm {

class Factored {
 public:
  Factored(const Covariances& covariances, const Execution& execution);
  Factored(const Factored&) = delete;
  Factored& operator=(const Factored&) = delete;

  /// The same covariances as products of factors, which live as long as this.
  const std::shared_ptr<const Covariances>& covariances() const { return covariances_; }

 private:
  std::vector<Index> offsets_;
  std::vector<double> values_;
  std::shared_ptr<const Covariances> covariances_;
};

}  // namespace halosvm
