/// \file
/// The logistic law as a mixture of three normal laws, of which expectations over normal errors are closed (spec K.5).
#pragma once

#include "halosvm/core/visibility.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Its distribution function is 1 / (1 + exp(-u)) to 1.1e-4.
struct LogisticMixture {
  /// Of the three laws, with the sum 1.
  static constexpr double shares[3] = {0.32329402, 0.56606181, 0.11064417};
  /// Of the three laws, whose means are 0.
  static constexpr double variances[3] = {1.32870897, 3.38999510, 8.50457061};
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
