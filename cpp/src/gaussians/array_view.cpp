// Arrays of float32 or float64: rows come in, float64 in blocks goes out.

#include "halosvm/gaussians/array_view.hpp"

#include "halosvm/core/check.hpp"

#include <cmath>
#include <vector>

namespace halosvm {
namespace {

/// Converts \p count numbers; a loop of its own for each case, so that each is vector code.
void convert(const float* from, Index count, bool squared, double* __restrict to) {
  if (squared) {
    for (Index j = 0; j < count; ++j) to[j] = static_cast<double>(from[j]) * static_cast<double>(from[j]);
  } else {
    for (Index j = 0; j < count; ++j) to[j] = static_cast<double>(from[j]);
  }
}

void convert(const double* from, Index count, bool squared, double* __restrict to) {
  if (squared) {
    for (Index j = 0; j < count; ++j) to[j] = from[j] * from[j];
  } else {
    for (Index j = 0; j < count; ++j) to[j] = from[j];
  }
}

/// Position of the first number outside [lowest, highest] (NaN is outside), or -1.
template <class T>
Index first_outside(const T* data, Index count, double lowest, double highest) {
  int outside = 0;
  for (Index j = 0; j < count; ++j) {
    const auto x = static_cast<double>(data[j]);
    outside |= static_cast<int>(!(x >= lowest)) | static_cast<int>(!(x <= highest));
  }
  if (outside == 0) return -1;
  for (Index j = 0; j < count; ++j) {
    const auto x = static_cast<double>(data[j]);
    if (!(x >= lowest && x <= highest)) return j;
  }
  return -1;
}

/// A pointer to the numbers of an array, which must be there if the array has any.
template <class T>
const T* numbers_of(const T* data, Index rows, Index cols) {
  check::require(rows >= 0 && cols >= 0, "array", "has a negative number of rows or columns");
  if (rows > 0 && cols > 0) check::given(data, "array");
  return data;
}

}  // namespace

ArrayView::ArrayView(const double* data, Index rows, Index cols, bool squared)
    : float64_(numbers_of(data, rows, cols)), rows_(rows), cols_(cols), squared_(squared) {}

ArrayView::ArrayView(const float* data, Index rows, Index cols, bool squared)
    : float32_(numbers_of(data, rows, cols)), rows_(rows), cols_(cols), squared_(squared) {}

Index ArrayView::row_bytes() const {
  return cols_ * static_cast<Index>(float64_ != nullptr ? sizeof(double) : sizeof(float));
}

ArrayView ArrayView::seen_from(const double* origin) const {
  ArrayView other = *this;
  other.origin_ = origin;
  return other;
}

const double* ArrayView::values(Index offset, Index count, double* scratch) const {
  if (float64_ != nullptr && !squared_ && origin_ == nullptr) return float64_ + offset;
  convert(offset, count, scratch);
  return scratch;
}

ConstMatrixMap ArrayView::block(const Rows& rows, double* scratch) const {
  if (rows.indices == nullptr) {
    return {values(rows.begin * cols_, rows.count * cols_, scratch), rows.count, cols_};
  }
  for (Index k = 0; k < rows.count; ++k) convert(rows.indices[k] * cols_, cols_, scratch + k * cols_);
  return {scratch, rows.count, cols_};
}

void ArrayView::convert(Index offset, Index count, double* to) const {
  if (float64_ != nullptr) {
    halosvm::convert(float64_ + offset, count, squared_, to);
  } else {
    halosvm::convert(float32_ + offset, count, squared_, to);
  }
  if (origin_ == nullptr) return;
  Index column = offset % cols_;
  for (Index j = 0; j < count; ++j) {
    to[j] -= origin_[column];
    column = column + 1 == cols_ ? 0 : column + 1;
  }
}

double ArrayView::highest() const { return squared_ ? std::sqrt(largest_value) : largest_value; }

Index ArrayView::first_refused(double lowest, const Execution& execution) const {
  // Long rows are cut too: an array may be one row of many numbers.
  const Index size = rows_ * cols_;
  const Chunks chunks(size, 65536);
  constexpr Index stride = 4096;
  std::vector<Index> found(static_cast<std::size_t>(chunks.count()), -1);
  run_tasks(chunks.count(), execution, [&](Index chunk, int, Checkpoint& checkpoint) {
    for (Index begin = chunks.begin(chunk); begin < chunks.end(chunk); begin += stride) {
      checkpoint();
      const Index count = std::min(stride, chunks.end(chunk) - begin);
      const Index at = float64_ != nullptr ? first_outside(float64_ + begin, count, lowest, highest())
                                           : first_outside(float32_ + begin, count, lowest, highest());
      if (at >= 0) {
        found[static_cast<std::size_t>(chunk)] = begin + at;
        return;
      }
    }
  });
  for (const Index at : found) {
    if (at >= 0) return at;
  }
  return -1;
}

void ArrayView::refuse(const std::string& argument, Index position, Index row, Index column,
                       const std::string& rule) const {
  const double value = float64_ != nullptr ? float64_[position] : static_cast<double>(float32_[position]);
  if (std::isfinite(value) && std::abs(value) > highest()) {
    check::fail_at(argument, row, column, value, "values beyond " + check::text(highest()) + " overflow: rescale");
  }
  check::fail_at(argument, row, column, value, rule);
}

void ArrayView::check(const std::string& argument, double lowest, const std::string& rule, const Execution& execution,
                      Index rows_per_example) const {
  const Index at = first_refused(lowest, execution);
  if (at < 0) return;
  refuse(argument, at, at / cols_ / rows_per_example, at % cols_, rule);
}

}  // namespace halosvm
