// Eight measurements side by side: rows of an array with errors enter, packs of one number for each of them leave.

#include "population/lane_rows.hpp"

#include <algorithm>

namespace halosvm::population {

using kernels::lanes;
using kernels::load;
using kernels::Pack;

LaneRows::LaneRows(const Gaussians& data, const Noise& noise)
    : x(data.n_features() * lanes),
      there(data.n_features() * lanes),
      errors(packed(data.n_features(), 0) * lanes),
      data_(data),
      noise_(noise),
      d_(data.n_features()),
      variances_(lanes, d_),
      matrix_(d_, d_),
      scratch_(std::max(noise.scratch_size(lanes), lanes * d_)) {}

void LaneRows::read(const Index* rows, Index count) {
  const ConstMatrixMap values = data_.means().block({0, count, rows}, scratch_.data());
  complete = true;
  for (Index l = 0; l < lanes; ++l) {
    const Index i = std::min(l, count - 1);
    for (Index j = 0; j < d_; ++j) {
      const double value = values(i, j);
      const bool is_there = value == value;
      x(j * lanes + l) = is_there ? value : 0.0;
      there(j * lanes + l) = is_there ? 1.0 : 0.0;
      complete = complete && is_there;
    }
  }
  read_errors(rows, count);
  if (complete) return;
  for (Index i = 0; i < d_; ++i) {
    const Pack here = load(&there(i * lanes));
    for (Index j = 0; j < i; ++j) {
      double* entry = &errors(packed(i, j) * lanes);
      store(entry, load(entry) * here * load(&there(j * lanes)));
    }
    double* entry = &errors(packed(i, i) * lanes);
    store(entry, here * load(entry) + (1.0 - here));
  }
}

void LaneRows::read_errors(const Index* rows, Index count) {
  if (noise_.diagonal()) {
    errors.setZero();
    MatrixMap variances(variances_.data(), count, d_);
    noise_.variances({0, count, rows}, variances, scratch_.data());
    for (Index j = 0; j < d_; ++j) {
      for (Index l = 0; l < lanes; ++l) {
        errors(packed(j, j) * lanes + l) = variances(std::min(l, count - 1), j);
      }
    }
    return;
  }
  for (Index l = 0; l < lanes; ++l) {
    const Index row = rows[std::min(l, count - 1)];
    const double* S = matrix_.data();
    if (noise_.full()) {
      S = noise_.stored_matrix(row, scratch_.data());
    } else {
      noise_.matrix(row, MatrixMap(matrix_.data(), d_, d_), scratch_.data());
    }
    double* out = &errors(l);
    for (Index i = 0; i < d_; ++i) {
      for (Index j = 0; j <= i; ++j, out += lanes) *out = S[i * d_ + j];
    }
  }
}

}  // namespace halosvm::population
