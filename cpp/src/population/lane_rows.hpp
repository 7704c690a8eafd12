/// \file
/// Eight measurements side by side, and the algebra of their small matrices, in packed lower triangles. A missing value
/// takes a row and a column of the identity and the residual 0. Private to populations.
#pragma once

#include "kernel/lanes.hpp"
#include "population/measurements.hpp"
#include "population/symmetric.hpp"

namespace halosvm::population {

/// Position of (i, j), i >= j, in a packed lower triangle.
inline Index packed(Index i, Index j) { return i * (i + 1) / 2 + j; }

inline void store(double* to, const kernels::Pack& value) { Eigen::Map<kernels::Pack>{to} = value; }

/// Values and errors of up to eight rows; lanes that are left over repeat the last row.
class LaneRows {
 public:
  LaneRows(const Gaussians& data, const Noise& noise);

  void read(const Index* rows, Index count);

  /// V + S where values are there, as (i, j), i >= j, for all lanes.
  auto total(const Matrix& V) const {
    return [this, &V](Index i, Index j) -> kernels::Pack {
      const kernels::Pack S = kernels::load(&errors(packed(i, j) * kernels::lanes));
      if (complete) return S + V(i, j);
      return S + V(i, j) * kernels::load(&there(i * kernels::lanes)) * kernels::load(&there(j * kernels::lanes));
    };
  }

  bool complete = true;  ///< whether no value is missing
  Vector x;              ///< 0 where missing, d packs
  Vector there;          ///< 1 where a value is there, else 0, d packs
  Vector errors;         ///< S, with the identity where values are missing, d (d + 1) / 2 packs

 private:
  void read_errors(const Index* rows, Index count);

  const Gaussians& data_;
  const Noise& noise_;
  Index d_;
  Matrix variances_, matrix_;
  Vector scratch_;
};

/// L with T = L L' for every lane, and the inverse of its pivots.
/// \param entry T(i, j), called once for each, row by row.
/// \return 1 for each lane whose T is positive definite beyond rounding, else 0.
template <class Entry>
kernels::Pack lane_cholesky(Index d, const Entry& entry, double* L, double* inverse_pivots,
                            kernels::LogProduct& determinant) {
  using kernels::lanes;
  using kernels::load;
  using kernels::Pack;
  const double threshold = singular_pivot * static_cast<double>(d);
  Pack good = Pack::Ones();
  for (Index i = 0; i < d; ++i) {
    const double* const row_i = L + packed(i, 0) * lanes;
    for (Index j = 0; j <= i; ++j) {
      const double* const row_j = L + packed(j, 0) * lanes;
      const Pack T = entry(i, j);
      Pack sum = T;
      for (Index p = 0; p < j; ++p) sum -= load(row_i + p * lanes) * load(row_j + p * lanes);
      if (j < i) {
        store(L + packed(i, j) * lanes, sum * load(inverse_pivots + j * lanes));
        continue;
      }
      good *= (sum > threshold * T && sum > smallest_variance).template cast<double>();
      sum = (sum > smallest_variance).select(sum, Pack::Ones());
      store(inverse_pivots + i * lanes, sum.sqrt().inverse());
      determinant.multiply(sum);
      determinant.normalise();
    }
  }
  return good;
}

/// M = L^-1, with pivots of 0 where a value is missing.
inline void lane_inverse(Index d, const double* L, const double* inverse_pivots, const double* there, double* M) {
  using kernels::lanes;
  using kernels::load;
  using kernels::Pack;
  for (Index i = 0; i < d; ++i) {
    const Pack pivot = load(inverse_pivots + i * lanes);
    for (Index j = 0; j < i; ++j) {
      Pack sum = Pack::Zero();
      for (Index p = j; p < i; ++p) sum -= load(L + packed(i, p) * lanes) * load(M + packed(p, j) * lanes);
      store(M + packed(i, j) * lanes, sum * pivot);
    }
    store(M + packed(i, i) * lanes, pivot * load(there + i * lanes));
  }
}

/// w = M'M r; returns |M r|^2.
inline kernels::Pack lane_pull(Index d, const double* M, const double* r, double* w) {
  using kernels::lanes;
  using kernels::load;
  using kernels::Pack;
  Pack quadratic = Pack::Zero();
  for (Index j = 0; j < d; ++j) store(w + j * lanes, Pack::Zero());
  for (Index i = 0; i < d; ++i) {
    const double* const row = M + packed(i, 0) * lanes;
    Pack y = Pack::Zero();
    for (Index j = 0; j <= i; ++j) y += load(row + j * lanes) * load(r + j * lanes);
    quadratic += y * y;
    for (Index j = 0; j <= i; ++j) store(w + j * lanes, load(w + j * lanes) + load(row + j * lanes) * y);
  }
  return quadratic;
}

/// out = M'M, its lower triangle.
inline void lane_precision(Index d, const double* M, double* out) {
  using kernels::lanes;
  using kernels::load;
  using kernels::Pack;
  for (Index i = 0; i < d; ++i) {
    for (Index j = 0; j <= i; ++j, out += lanes) {
      Pack sum = Pack::Zero();
      for (Index p = i; p < d; ++p) sum += load(M + packed(p, i) * lanes) * load(M + packed(p, j) * lanes);
      store(out, sum);
    }
  }
}

/// U = M C for a lower triangular C that is the same for all lanes; returns |U|^2.
inline kernels::Pack lane_times_lower(Index d, const double* M, const Matrix& C, double* U) {
  using kernels::lanes;
  using kernels::load;
  using kernels::Pack;
  Pack square = Pack::Zero();
  for (Index i = 0; i < d; ++i) {
    const double* const row = M + packed(i, 0) * lanes;
    for (Index p = 0; p <= i; ++p) {
      Pack sum = Pack::Zero();
      for (Index j = p; j <= i; ++j) sum += load(row + j * lanes) * C(j, p);
      store(U + packed(i, p) * lanes, sum);
      square += sum * sum;
    }
  }
  return square;
}

/// X = M'U, d x d packs.
inline void lane_transposed_times(Index d, const double* M, const double* U, double* X) {
  using kernels::lanes;
  using kernels::load;
  using kernels::Pack;
  for (Index i = 0; i < d; ++i) {
    for (Index p = 0; p < d; ++p) {
      Pack sum = Pack::Zero();
      for (Index j = std::max(i, p); j < d; ++j) sum += load(M + packed(j, i) * lanes) * load(U + packed(j, p) * lanes);
      store(X + (i * d + p) * lanes, sum);
    }
  }
}

}  // namespace halosvm::population
