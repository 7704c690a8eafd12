/// \file
/// Targets: what an example's score should be. Codes of classes, or values, come in; the offset and the sign of each
/// example in its margin deficit m = offset - sign (w'x + b) go out.
#pragma once

#include "halosvm/gaussians/array_view.hpp"

#include <cstdint>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// Class codes of the examples. One problem: code 1 is the positive class, 0 the negative one. Several problems:
/// codes 0 ... n_problems - 1, and problem k separates class k from all others. With offsets the signs are those of
/// halves of a loss of residuals: y - f is too large for what has sign 1, too small for what has sign -1.
struct Targets {
  const std::int16_t* codes;          ///< one for each example
  Index n_problems;                   ///< how many problems there are
  Index positive = 1;                 ///< the code of the positive class when there is one problem
  const double* offsets = nullptr;    ///< one for each example, or null: that of the loss
  const double* variances = nullptr;  ///< of the targets themselves, which add to s^2; or null for none

  /// +1 or -1: the sign of example \p row in problem \p k.
  double sign(Index row, Index k) const { return codes[row] == (n_problems == 1 ? positive : k) ? 1.0 : -1.0; }

  /// The signs of a block of rows in problem \p k.
  void signs(const Rows& rows, Index k, double* out) const {
    for (Index i = 0; i < rows.count; ++i) out[i] = sign(rows[i], k);
  }
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
