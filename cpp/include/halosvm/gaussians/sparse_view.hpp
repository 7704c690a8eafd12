/// \file
/// A read-only sparse array in compressed rows (CSR) that the caller owns: values in float32 or float64, indices of 32
/// or 64 bits, read as they are stored.
#pragma once

#include "halosvm/gaussians/array_view.hpp"

#include <cstdint>
#include <string>
#include <variant>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// A pointer to numbers of one of two types.
using SparseValues = std::variant<const double*, const float*>;
/// A pointer to indices of one of two types.
using SparseIndices = std::variant<const std::int32_t*, const std::int64_t*>;

/// The view: three pointers and a shape; nothing is copied.
class SparseView {
 public:
  SparseView() = default;
  /// \param values, columns of the stored numbers, row after row, the columns of each row ascending without repetition.
  /// \param offsets rows + 1 numbers: row i is stored from offsets[i] to offsets[i + 1].
  /// \param squared the numbers are square roots: they are read as their squares (standard deviations as variances).
  /// All must outlive the view.
  SparseView(SparseValues values, SparseIndices columns, SparseIndices offsets, Index rows, Index cols,
             bool squared = false);

  /// Number of rows.
  Index rows() const { return rows_; }
  /// Number of columns.
  Index cols() const { return cols_; }
  /// Whether the numbers are read as their squares.
  bool squared() const { return squared_; }
  /// Where the numbers of a row begin; of row rows() where all end.
  Index offset(Index row) const {
    return std::visit(
        [row](const auto* offsets) { return offsets != nullptr ? static_cast<Index>(offsets[row]) : Index{0}; },
        offsets_);
  }
  /// How many numbers are stored.
  Index stored() const { return offset(rows_) - offset(0); }
  /// Bytes stored for one row, on average, rounded up.
  Index row_bytes() const;

  /// Calls use(values, columns, offsets) with pointers to what is stored: one call for all rows of a block.
  template <class Use>
  void as_stored(const Use& use) const {
    std::visit([&](const auto* values, const auto* columns, const auto* offsets) { use(values, columns, offsets); },
               values_, columns_, offsets_);
  }

  /// Asks the processor to bring a row into its cache.
  void prefetch(Index row) const;

  /// Throws std::invalid_argument unless every stored number x is finite and lowest <= x <= 1e150 (1e75 if squared),
  /// and every row's columns ascend and exist.
  void check(const std::string& argument, double lowest, const std::string& rule, const Execution& execution) const;

 private:
  SparseValues values_;
  SparseIndices columns_;
  SparseIndices offsets_;
  Index rows_ = 0;
  Index cols_ = 0;
  bool squared_ = false;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
