// Products of rows with weights: rows as they are stored come in, sums in float64 go out.
//
// Memory is read at its own pace where rows are touched one after another, as one long stream; from the cache, four
// rows at a time save loads.

#include "halosvm/gaussians/array_view.hpp"

#include <algorithm>
#include <array>

namespace halosvm {
namespace {

/// Eight numbers, in as many registers as the processor needs for them.
using Pack = Eigen::Array<double, 8, 1>;

Pack load(const double* from) { return Eigen::Map<const Pack>(from); }

/// x_r' w_p for 4 rows and 2 weights at a time: every number loaded is used at least twice.
void dots_4x2(const double* x, const double* w0, const double* w1, Index size, double* out0, double* out1) {
  constexpr Index rows = 4;
  std::array<Pack, rows> sum0;
  std::array<Pack, rows> sum1;
  sum0.fill(Pack::Zero());
  sum1.fill(Pack::Zero());
  Index j = 0;
  for (; j + 8 <= size; j += 8) {
    const Pack a = load(w0 + j);
    const Pack b = load(w1 + j);
    for (std::size_t r = 0; r < rows; ++r) {
      const Pack value = load(x + static_cast<Index>(r) * size + j);
      sum0[r] += value * a;
      sum1[r] += value * b;
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    out0[r] = sum0[r].sum();
    out1[r] = sum1[r].sum();
    for (Index k = j; k < size; ++k) {
      out0[r] += x[static_cast<Index>(r) * size + k] * w0[k];
      out1[r] += x[static_cast<Index>(r) * size + k] * w1[k];
    }
  }
}

/// sum_p += sum_r a_p(r) x_r for 4 rows and 2 sums at a time.
void add_4x2(const double* x, const double* a0, const double* a1, Index size, double* sum0, double* sum1) {
  Index j = 0;
  for (; j + 8 <= size; j += 8) {
    Eigen::Map<Pack> out0(sum0 + j);
    Eigen::Map<Pack> out1(sum1 + j);
    Pack first = out0;
    Pack second = out1;
    for (Index r = 0; r < 4; ++r) {
      const Pack value = load(x + r * size + j);
      first += value * a0[r];
      second += value * a1[r];
    }
    out0 = first;
    out1 = second;
  }
  for (; j < size; ++j) {
    for (Index r = 0; r < 4; ++r) {
      sum0[j] += x[r * size + j] * a0[r];
      sum1[j] += x[r * size + j] * a1[r];
    }
  }
}

/// A stored number as it is read.
template <bool squared, class T>
double read(T x) {
  const auto value = static_cast<double>(x);
  return squared ? value * value : value;
}

/// \p size numbers as they are read, side by side.
template <bool squared, int size, class T>
Eigen::Array<double, size, 1> read_many(const T* from) {
  Eigen::Array<double, size, 1> values = Eigen::Map<const Eigen::Array<T, size, 1>>(from).template cast<double>();
  if constexpr (squared) return values.square();
  return values;
}

/// x'w in 16 lanes, which hide the latency of additions, and then in 4. The order of additions is the same on every
/// processor.
template <bool squared, class T>
double dot(const T* x, const double* w, Index size) {
  Pack first = Pack::Zero();
  Pack second = Pack::Zero();
  Index j = 0;
  for (; j + 16 <= size; j += 16) {
    first += read_many<squared, 8>(x + j) * load(w + j);
    second += read_many<squared, 8>(x + j + 8) * load(w + j + 8);
  }
  first += second;
  Eigen::Array4d four = first.head<4>() + first.tail<4>();
  for (; j + 4 <= size; j += 4) four += read_many<squared, 4>(x + j) * Eigen::Map<const Eigen::Array4d>(w + j);
  double sum = (four(0) + four(2)) + (four(1) + four(3));
  for (; j < size; ++j) sum += read<squared>(x[j]) * w[j];
  return sum;
}

/// sum += a_0 x_0 + ... + a_3 x_3.
template <bool squared, class T>
void add_four(const std::array<const T*, 4>& rows, const double* a, Index size, double* __restrict sum) {
  const T* __restrict x0 = rows[0];
  const T* __restrict x1 = rows[1];
  const T* __restrict x2 = rows[2];
  const T* __restrict x3 = rows[3];
  const double a0 = a[0];
  const double a1 = a[1];
  const double a2 = a[2];
  const double a3 = a[3];
  for (Index j = 0; j < size; ++j) {
    sum[j] += (read<squared>(x0[j]) * a0 + read<squared>(x1[j]) * a1) +
              (read<squared>(x2[j]) * a2 + read<squared>(x3[j]) * a3);
  }
}

/// Asks for a row that no stream leads to.
template <class T>
void ask_for([[maybe_unused]] const T* row, [[maybe_unused]] Index size) {
#if defined(__GNUC__)
  constexpr Index cache_line = 64 / static_cast<Index>(sizeof(T));
  constexpr Index most = 4096 / static_cast<Index>(sizeof(T));  // then the hardware sees a stream of its own
  for (Index j = 0; j < std::min(size, most); j += cache_line) __builtin_prefetch(row + j);
#endif
}

template <bool squared, class T>
void dots(const T* data, Index cols, const Rows& rows, const double* w, double* out) {
  constexpr Index ahead = 2;
  for (Index i = 0; i < rows.count; ++i) {
    if (rows.indices != nullptr && i + ahead < rows.count) ask_for(data + rows[i + ahead] * cols, cols);
    out[i] = dot<squared>(data + rows[i] * cols, w, cols);
  }
}

template <bool squared, class T>
void add_rows(const T* data, Index cols, const Rows& rows, const double* a, double* __restrict sum) {
  const auto row = [&](Index i) { return data + rows[i] * cols; };
  Index i = 0;
  for (; i + 4 <= rows.count; i += 4) {
    add_four<squared, T>({row(i), row(i + 1), row(i + 2), row(i + 3)}, a + i, cols, sum);
  }
  for (; i < rows.count; ++i) {
    const T* __restrict x = row(i);
    const double weight = a[i];
    for (Index j = 0; j < cols; ++j) sum[j] += read<squared>(x[j]) * weight;
  }
}

}  // namespace

void multiply(const ConstMatrixMap& block, const ConstMatrixRef& weights, MatrixRef out) {
  const Index n_problems = weights.rows();
  const Index paired = n_problems / 2 * 2;
  const Index tiled = paired > 0 ? block.rows() / 4 * 4 : 0;
  for (Index i = 0; i < tiled; i += 4) {
    for (Index k = 0; k < paired; k += 2) {
      dots_4x2(block.row(i).data(), weights.row(k).data(), weights.row(k + 1).data(), block.cols(),
               out.row(k).data() + i, out.row(k + 1).data() + i);
    }
  }
  for (Index k = 0; k < n_problems; ++k) {
    const Index begin = k < paired ? tiled : 0;
    dots<false>(block.data(), block.cols(), {begin, block.rows() - begin}, weights.row(k).data(),
                out.row(k).data() + begin);
  }
}

void add_weighted_rows(const ConstMatrixMap& block, const ConstMatrixRef& coefficients, MatrixRef sum) {
  const Index n_problems = coefficients.rows();
  const Index paired = n_problems / 2 * 2;
  const Index tiled = paired > 0 ? block.rows() / 4 * 4 : 0;
  for (Index k = 0; k < paired; k += 2) {
    for (Index i = 0; i < tiled; i += 4) {
      add_4x2(block.row(i).data(), coefficients.row(k).data() + i, coefficients.row(k + 1).data() + i, block.cols(),
              sum.row(k).data(), sum.row(k + 1).data());
    }
  }
  for (Index k = 0; k < n_problems; ++k) {
    const Index begin = k < paired ? tiled : 0;
    add_rows<false>(block.data(), block.cols(), {begin, block.rows() - begin}, coefficients.row(k).data() + begin,
                    sum.row(k).data());
  }
}

void ArrayView::prefetch(Index row) const {
  float64_ != nullptr ? ask_for(float64_ + row * cols_, cols_) : ask_for(float32_ + row * cols_, cols_);
}

void ArrayView::multiply(const Rows& rows, const ConstMatrixRef& weights, MatrixRef out, double* scratch) const {
  if (weights.rows() > 1 || origin_ != nullptr) {
    halosvm::multiply(block(rows, scratch), weights, out);
    return;
  }
  const double* w = weights.data();
  if (float64_ != nullptr) {
    squared_ ? dots<true>(float64_, cols_, rows, w, out.data()) : dots<false>(float64_, cols_, rows, w, out.data());
  } else {
    squared_ ? dots<true>(float32_, cols_, rows, w, out.data()) : dots<false>(float32_, cols_, rows, w, out.data());
  }
}

void ArrayView::add_weighted_rows(const Rows& rows, const ConstMatrixRef& coefficients, MatrixRef sum,
                                  double* scratch) const {
  if (coefficients.rows() > 1 || origin_ != nullptr) {
    halosvm::add_weighted_rows(block(rows, scratch), coefficients, sum);
    return;
  }
  const double* a = coefficients.data();
  if (float64_ != nullptr) {
    squared_ ? add_rows<true>(float64_, cols_, rows, a, sum.data())
             : add_rows<false>(float64_, cols_, rows, a, sum.data());
  } else {
    squared_ ? add_rows<true>(float32_, cols_, rows, a, sum.data())
             : add_rows<false>(float32_, cols_, rows, a, sum.data());
  }
}

}  // namespace halosvm
