/// \file
/// A read-only, row-major array of numbers that the caller owns, in float32 or float64, seen as float64 block by block.
/// Every array of the data enters through here, so nothing above knows of storage types.
#pragma once

#include "halosvm/core/parallel.hpp"
#include "halosvm/core/types.hpp"

#include <string>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// The rows a block consists of: a run of consecutive rows, or a list of row numbers.
struct Rows {
  Index begin = 0;                 ///< first row of a run
  Index count = 0;                 ///< number of rows
  const Index* indices = nullptr;  ///< when given, row k of the block is indices[k] and begin is unused

  /// Number of the row that is row \p k of the block.
  Index operator[](Index k) const { return indices != nullptr ? indices[k] : begin + k; }
};

/// The view: a pointer, a shape and a type of numbers, which are never copied as a whole.
class ArrayView {
 public:
  ArrayView() = default;
  /// \param data rows x cols numbers, row-major, which must outlive the view.
  /// \param squared the numbers are square roots: they are read as their squares (standard deviations as variances).
  ArrayView(const double* data, Index rows, Index cols, bool squared = false);
  /// The same for float32.
  ArrayView(const float* data, Index rows, Index cols, bool squared = false);

  /// Number of rows.
  Index rows() const { return rows_; }
  /// Number of columns.
  Index cols() const { return cols_; }
  /// Whether there are no numbers.
  bool empty() const { return rows_ == 0 || cols_ == 0; }
  /// The same numbers less \p origin, one number for each column, which must outlive the result.
  ArrayView seen_from(const double* origin) const;

  /// Relative rounding error of the stored numbers.
  double precision() const { return float64_ != nullptr ? 0x1p-53 : 0x1p-24; }
  /// Bytes of one row as stored.
  Index row_bytes() const;

  /// A block of rows as float64: the caller's own memory when it can be used as it is, otherwise \p scratch
  /// (rows.count x cols numbers) filled with converted values.
  ConstMatrixMap block(const Rows& rows, double* scratch) const;

  /// \p count consecutive numbers from position \p offset of the whole array, likewise.
  const double* values(Index offset, Index count, double* scratch) const;

  /// Calls \p use with a pointer to the numbers as they are stored, from position \p offset of the whole array; only
  /// where they are read as they are.
  template <class Use>
  void as_stored(Index offset, const Use& use) const {
    if (float64_ != nullptr) {
      use(float64_ + offset);
    } else {
      use(float32_ + offset);
    }
  }

  /// out(k, i) = x_i' w_k for the rows x_i and the rows w_k of \p weights. One problem reads the numbers as they are
  /// stored, others a \ref block.
  void multiply(const Rows& rows, const ConstMatrixRef& weights, MatrixRef out, double* scratch) const;

  /// Numbers of scratch memory for the two products with blocks of \p rows rows.
  Index scratch_size(Index rows, Index problems) const { return problems > 1 || origin_ != nullptr ? rows * cols_ : 0; }

  /// sum(k, :) += sum_i coefficients(k, i) x_i, likewise.
  void add_weighted_rows(const Rows& rows, const ConstMatrixRef& coefficients, MatrixRef sum, double* scratch) const;

  /// Asks the processor to bring a row into its cache.
  void prefetch(Index row) const;

  /// Throws unless every stored number x is finite and lowest <= x <= 1e150 (1e75 if squared).
  /// \param rule ends the message, as in "must be finite".
  /// \param rows_per_example consecutive rows that make up one example; the message counts examples.
  void check(const std::string& argument, double lowest, const std::string& rule, const Execution& execution,
             Index rows_per_example = 1) const;

  /// Position of the first number that \ref check refuses, or -1.
  Index first_refused(double lowest, const Execution& execution) const;
  /// Throws for the number at a position of the whole array, which the message calls row and column of the argument.
  [[noreturn]] void refuse(const std::string& argument, Index position, Index row, Index column,
                           const std::string& rule) const;

 private:
  double highest() const;
  void convert(Index offset, Index count, double* to) const;

  const double* float64_ = nullptr;
  const float* float32_ = nullptr;
  Index rows_ = 0;
  Index cols_ = 0;
  bool squared_ = false;
  const double* origin_ = nullptr;
};

/// The same for the rows of a block.
void multiply(const ConstMatrixMap& block, const ConstMatrixRef& weights, MatrixRef out);
/// sum(k, :) += sum_i coefficients(k, i) x_i for the rows x_i of a block.
void add_weighted_rows(const ConstMatrixMap& block, const ConstMatrixRef& coefficients, MatrixRef sum);

}  // namespace halosvm
HALOSVM_PUBLIC_END
