/// \file
/// Every covariance kind in every storage, each with the dense matrices it stands for.
#pragma once

#include "halosvm/halosvm.hpp"
#include "oracle/random.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace oracle {

using halosvm::ArrayView;
using halosvm::Covariances;

inline ArrayView view_of(const Matrix& numbers) { return {numbers.data(), numbers.rows(), numbers.cols()}; }

/// A batch of covariances that owns its numbers.
struct Batch {
  std::string name;
  std::vector<Matrix> dense;  ///< S_i
  std::shared_ptr<const Covariances> covariances;
  std::vector<std::shared_ptr<void>> storage;

  /// Takes ownership of numbers that a view or the offsets point to.
  template <class T>
  const T* keep(std::vector<T> numbers) {
    numbers.reserve(1);  // so that no view has a null pointer
    auto owned = std::make_shared<std::vector<T>>(std::move(numbers));
    storage.push_back(owned);
    return owned->data();
  }
};

/// Makes batches of n matrices of order d whose numbers are stored as T. The first matrix of each is 0.
template <class T>
class BatchMaker {
 public:
  BatchMaker(Index n, Index d, std::uint64_t seed) : n_(n), d_(d), random_(seed) {}
  Batch zero();
  Batch isotropic(bool squared);
  Batch diagonal(bool squared);
  Batch full();

  /// Every other value stored, the columns of each row ascending.
  Batch sparse_diagonal(bool squared);

  /// The covariances of another batch, of fewer features, in some of the columns.
  Batch in_columns(Batch inner, std::vector<Index> columns);

  /// Diagonal: none, variances or standard deviations.
  enum class Extra { none, variances, stds };

  Batch low_rank(Index rank, Extra extra);

  /// Ranks 0, 1, ..., largest, 0, 1, ...
  Batch ragged(Index largest, Extra extra);

  /// Appends one of each.
  void add_all(std::vector<Batch>& out);

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  static double read(T x, bool squared);

  Batch begin(const std::string& name);

  /// Positive numbers, those of the first row 0.
  std::vector<T> variances(Index rows, Index cols);

  ArrayView add_diagonal(Batch& batch, bool squared);
  ArrayView extra_diagonal(Batch& batch, Extra extra);
  std::vector<T> factor_numbers(Batch& batch, const std::vector<Index>& ranks);

  Index n_;
  Index d_;
  Random random_;
};

// Compiled once, in covariance_batches.cpp: most tests use them.
extern template class BatchMaker<double>;
extern template class BatchMaker<float>;

/// Every kind and variant in float64 and float32.
std::vector<Batch> all_batches(Index n, Index d, std::uint64_t seed);

/// Those of the kinds that store numbers of all features, which is what kernels know.
std::vector<Batch> whole_batches(Index n, Index d, std::uint64_t seed);

}  // namespace oracle
