/// \file
/// The means of a batch: weights come in, scores, sums of rows and dense blocks go out. Only here it is known how means
/// are stored; all that reads them asks once for each block of rows.
#pragma once

#include "halosvm/core/check.hpp"
#include "halosvm/gaussians/array_view.hpp"
#include "halosvm/gaussians/sparse_view.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// A reference to a function of the place of a row in its block and of its score that says how much of the row is to
/// be added to the weights. Unlike std::function it never allocates.
class RowStep {
 public:
  /// Refers to the function, which must outlive this object; it is called as function(place, score).
  template <class Function>
  RowStep(const Function& function)  // NOLINT(*-explicit-constructor): lambdas become steps
      : function_(&function), call_([](const void* object, Index place, double score) -> double {
          return (*static_cast<const Function*>(object))(place, score);
        }) {}
  /// Calls the function.
  double operator()(Index place, double score) const { return call_(function_, place, score); }

 private:
  const void* function_;
  double (*call_)(const void*, Index, double);
};

/// Means x_i in any storage; products and sums over blocks of rows are all that others ask for. These are the inner
/// loops of everything: sizes and numbers are the caller's to check.
class Means {
 public:
  /// For the kinds: what all of them have.
  Means(Index rows, Index cols) : rows_(rows), cols_(cols) {}
  virtual ~Means() = default;
  Means(const Means&) = delete;
  Means& operator=(const Means&) = delete;

  /// Number of examples.
  Index rows() const { return rows_; }
  /// Number of features.
  Index cols() const { return cols_; }

  /// Whether a \ref block takes much more memory than the rows do as they are stored.
  virtual bool sparse() const = 0;
  /// Bytes stored for one row, on average.
  virtual Index row_bytes() const = 0;
  /// Rows with about as many stored numbers as there are columns, so that work on a vector of all columns adds little.
  virtual Index rows_worth_a_vector() const = 0;
  /// Numbers of scratch memory for the products and moments of blocks of \p rows rows.
  virtual Index scratch_size(Index rows, Index problems) const = 0;

  /// out(k, i) = x_i' w_k for the rows x_i of the block and the rows w_k of \p weights.
  virtual void multiply(const Rows& rows, const ConstMatrixRef& weights, MatrixRef out, double* scratch) const = 0;
  /// sum(k, :) += sum_i coefficients(k, i) x_i.
  virtual void add_weighted_rows(const Rows& rows, const ConstMatrixRef& coefficients, MatrixRef sum,
                                 double* scratch) const = 0;
  /// first += sum_i c_i x_i and second += sum_i c_i x_i^2, scratch as for two problems.
  virtual void add_moments(const Rows& rows, const ConstVectorRef& c, VectorRef first, VectorRef second,
                           double* scratch) const = 0;
  /// One row after the other: w += step(i, x_i' w) x_i. \p scratch of cols() numbers.
  virtual void descend(const Rows& rows, VectorRef w, const RowStep& step, double* scratch) const = 0;
  /// out(i) = |x_i|^2, likewise.
  virtual void squares(const Rows& rows, VectorRef out, double* scratch) const = 0;
  /// The rows in full, as float64: the caller's own memory or \p scratch (rows.count x cols numbers).
  virtual ConstMatrixMap block(const Rows& rows, double* scratch) const = 0;

  /// Appends the columns in which rows may be other than 0, some more than once. \returns false where these may be all.
  virtual bool add_support(const Rows& rows, std::vector<Index>& columns) const {
    static_cast<void>(rows);
    static_cast<void>(columns);
    return false;
  }

  /// Asks the processor to bring a row into its cache.
  virtual void prefetch(Index row) const = 0;

  /// These means, wherever they are seen from, less an origin: \p origin, but for 0 where a column is sparse, which no
  /// origin would serve, and for rounding; see \ref origin_from.
  virtual std::shared_ptr<const Means> seen_from(const Vector& origin) const = 0;
  /// What is subtracted from the stored numbers, or an empty vector for 0.
  virtual const Vector& origin() const = 0;
  /// What is subtracted here and not in \p other, from which \ref seen_from made these.
  Vector origin_from(const Means& other) const;

  /// Throws unless all numbers are finite and at most 1e150 in size.
  virtual void check(const std::string& argument, const Execution& execution) const = 0;

  /// \ref check, but once however often it is asked for: what takes means from outside asks.
  void check_once(const std::string& argument, const Execution& execution) const {
    once_([&] { check(argument, execution); });
  }
  /// Takes the numbers for checked: the caller vouches for them.
  void assume_checked() const { once_.assume(); }

 private:
  Index rows_;
  Index cols_;
  check::Once once_;
};

/// Rows as they lie in memory.
class DenseMeans final : public Means {
 public:
  /// \param array the numbers, which must outlive this object. \param origin what they are seen from, or empty for 0.
  explicit DenseMeans(const ArrayView& array, Vector origin = {});

  bool sparse() const override { return false; }
  Index row_bytes() const override { return array_.row_bytes(); }
  Index rows_worth_a_vector() const override { return 1; }
  Index scratch_size(Index rows, Index problems) const override { return array_.scratch_size(rows, problems); }
  void multiply(const Rows& rows, const ConstMatrixRef& weights, MatrixRef out, double* scratch) const override {
    array_.multiply(rows, weights, out, scratch);
  }
  void add_weighted_rows(const Rows& rows, const ConstMatrixRef& coefficients, MatrixRef sum,
                         double* scratch) const override {
    array_.add_weighted_rows(rows, coefficients, sum, scratch);
  }
  void add_moments(const Rows& rows, const ConstVectorRef& c, VectorRef first, VectorRef second,
                   double* scratch) const override;
  void descend(const Rows& rows, VectorRef w, const RowStep& step, double* scratch) const override;
  void squares(const Rows& rows, VectorRef out, double* scratch) const override;
  ConstMatrixMap block(const Rows& rows, double* scratch) const override { return array_.block(rows, scratch); }
  void prefetch(Index row) const override { array_.prefetch(row); }
  std::shared_ptr<const Means> seen_from(const Vector& origin) const override;
  const Vector& origin() const override { return origin_; }
  void check(const std::string& argument, const Execution& execution) const override;

 private:
  Vector origin_;
  ArrayView stored_;
  ArrayView array_;  ///< seen from the origin
};

/// Rows of which only some numbers are stored (CSR); the others are 0. Passes take time for what is stored alone.
///
/// Of an origin only the columns that are stored in half of the rows or more are heeded, so that the others stay
/// sparse. A column whose mean is far above its deviation is one of them.
class SparseMeans final : public Means {
 public:
  /// \param array the numbers, which must outlive this object.
  explicit SparseMeans(const SparseView& array);

  bool sparse() const override { return true; }
  Index row_bytes() const override { return array_.row_bytes(); }
  Index rows_worth_a_vector() const override;
  Index scratch_size(Index /*rows*/, Index /*problems*/) const override { return 0; }
  void multiply(const Rows& rows, const ConstMatrixRef& weights, MatrixRef out, double* scratch) const override;
  void add_weighted_rows(const Rows& rows, const ConstMatrixRef& coefficients, MatrixRef sum,
                         double* scratch) const override;
  void add_moments(const Rows& rows, const ConstVectorRef& c, VectorRef first, VectorRef second,
                   double* scratch) const override;
  void descend(const Rows& rows, VectorRef w, const RowStep& step, double* scratch) const override;
  void squares(const Rows& rows, VectorRef out, double* scratch) const override;
  ConstMatrixMap block(const Rows& rows, double* scratch) const override;
  bool add_support(const Rows& rows, std::vector<Index>& columns) const override;
  void prefetch(Index row) const override { array_.prefetch(row); }
  std::shared_ptr<const Means> seen_from(const Vector& origin) const override;
  const Vector& origin() const override { return origin_; }
  void check(const std::string& argument, const Execution& execution) const override;

 private:
  /// Columns that are stored in half of the rows or more, in ascending order; found when first asked for.
  struct Often {
    std::once_flag found;
    std::vector<Index> columns;
  };
  SparseMeans(const SparseView& array, std::shared_ptr<Often> often, Vector origin);
  template <class Use>
  void for_each_row(const Rows& rows, const Use& use) const;
  template <class T, class I>
  double score(const T* x, const I* columns, Index count, const double* w) const;
  template <class T, class I>
  void add(double a, const T* x, const I* columns, Index count, double* total) const;
  template <class I, class Use>
  void for_each_absent(const I* columns, Index count, const Use& use) const;

  SparseView array_;
  std::shared_ptr<Often> often_;
  Vector origin_;
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
