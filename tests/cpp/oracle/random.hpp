/// \file
/// Test data that are the same with every standard library, whose own distributions differ.
#pragma once

#include "halosvm/core/types.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace oracle {

using halosvm::Index;
using halosvm::Matrix;
using halosvm::Vector;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// Uniform on [0, 1).
  double uniform() { return static_cast<double>(engine_() >> 11U) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal() { return std::sqrt(-2.0 * std::log1p(-uniform())) * std::cos(6.283185307179586 * uniform()); }
  /// 0 ... n - 1.
  Index below(Index n) { return static_cast<Index>(uniform() * static_cast<double>(n)); }

  Matrix normal_matrix(Index rows, Index cols) {
    Matrix out(rows, cols);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) out(i, j) = normal();
    }
    return out;
  }

  Vector normal_vector(Index size) { return normal_matrix(size, 1).col(0); }

  /// Codes 0 ... n_codes - 1, each of them present when size >= n_codes.
  std::vector<std::int16_t> codes(Index size, Index n_codes) {
    std::vector<std::int16_t> out;
    for (Index i = 0; i < size; ++i) out.push_back(static_cast<std::int16_t>(i < n_codes ? i : below(n_codes)));
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace oracle
