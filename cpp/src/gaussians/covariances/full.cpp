// S_i as matrices: S w and w' S v, several problems at once.

#include "halosvm/gaussians/covariances/full.hpp"

#include "halosvm/core/check.hpp"

#include "linalg/cholesky.hpp"
#include "linalg/eigen.hpp"
#include "linalg/positive_definite.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace halosvm {
namespace {

/// Relative deviation from symmetry and from a smallest eigenvalue of 0 that counts as rounding. The rounding errors
/// of n^2 entries move an eigenvalue by at most n times one of them.
double tolerance_of(const ArrayView& matrices) {
  return std::max(1e-8, 4.0 * static_cast<double>(matrices.cols()) * matrices.precision());
}

/// Matrix rows converted at a time, so that scratch memory stays small.
Index strip_rows(Index n_features) {
  return std::clamp<Index>(4096 / std::max<Index>(1, n_features), 1, std::max<Index>(1, n_features));
}

void check_matrix(const ConstMatrixRef& S, double tolerance, const std::string& argument, Index row) {
  const double largest = S.cwiseAbs().maxCoeff();
  if (largest == 0.0) return;
  Index i = 0;
  Index j = 0;
  const double asymmetry = (S - S.transpose()).cwiseAbs().maxCoeff(&i, &j);
  if (asymmetry > tolerance * largest) {
    check::fail(argument, "row " + std::to_string(row) + " is not symmetric: entry (" + std::to_string(i) + ", " +
                              std::to_string(j) + ") is " + check::text(S(i, j)) + ", its mirror image " +
                              check::text(S(j, i)));
  }
  // Cholesky of the slightly shifted matrix accepts in n^3 / 3; only a failure pays for eigenvalues.
  const Columns symmetric = 0.5 * (S + S.transpose()) / largest;
  Columns shifted = symmetric;
  shifted.diagonal().array() += tolerance;
  if (linalg::cholesky(shifted)) return;
  linalg::SymmetricEigen eigen;
  eigen.compute_values(symmetric);
  const double smallest = eigen.values()(0);
  if (smallest < -tolerance) {
    check::fail(argument, "row " + std::to_string(row) + " has the eigenvalue " + check::text(smallest * largest) +
                              "; a covariance must be positive semi-definite");
  }
}

/// Features of matrices that are decomposed side by side; larger ones fill the registers alone.
constexpr Index few_features = 64;

std::uint32_t bit(Index r) { return 1U << static_cast<std::uint32_t>(r); }

/// Puts the lower triangle of S, of largest entry 1 and shifted as for `check_matrix`, among others side by side.
/// \return whether S is symmetric.
bool pack(const ConstMatrixRef& S, double tolerance, Index place, double* lower) {
  const double largest = S.cwiseAbs().maxCoeff();
  const double scale = largest > 0.0 ? 0.5 / largest : 0.0;
  double asymmetry = 0.0;
  double* to = lower + place;
  for (Index i = 0; i < S.rows(); ++i) {
    for (Index j = 0; j < i; ++j, to += linalg::side_by_side) {
      const double a = S(i, j);
      const double b = S(j, i);
      asymmetry = std::max(asymmetry, std::abs(a - b));
      *to = scale * (a + b);
    }
    *to = 2.0 * scale * S(i, i) + (largest > 0.0 ? tolerance : 1.0);
    to += linalg::side_by_side;
  }
  return asymmetry <= tolerance * largest;
}

/// The matrices, at most eight, that are not symmetric or not clearly definite, a bit for each.
/// \param matrix returns one of them. \param lower scratch memory.
template <class MatrixOf>
std::uint32_t doubtful(const MatrixOf& matrix, Index count, double tolerance, Index d, double* lower) {
  std::uint32_t some = 0;
  for (Index r = 0; r < count; ++r) {
    if (!pack(matrix(r), tolerance, r, lower)) some |= bit(r);
  }
  for (Index r = count; r < linalg::side_by_side; ++r) pack(Matrix::Zero(d, d), tolerance, r, lower);
  return some | linalg::not_positive_definite(lower, d);
}

}  // namespace

FullCovariances::FullCovariances(const ArrayView& matrices, Index n_samples)
    : Covariances(n_samples, matrices.cols()), matrices_(matrices) {
  check::same_size("matrices", matrices.rows(), "n_samples * n_features", n_samples * matrices.cols(), "rows");
}

Index FullCovariances::scratch_size(const BlockShape& shape) const {
  return shape.problems * n_features() + strip_rows(n_features()) * (n_features() + shape.problems);
}

Index FullCovariances::kept_size(const BlockShape& shape) const { return shape.rows * shape.problems * n_features(); }

void FullCovariances::multiply(Index row, const ConstMatrixRef& W, double* out, double* scratch) const {
  const Index d = n_features();
  const Index strip = strip_rows(d);
  for (Index begin = 0; begin < d; begin += strip) {
    const Index count = std::min(strip, d - begin);
    matrices_.multiply({row * d + begin, count}, W, MatrixMap(out + begin * W.rows(), W.rows(), count), scratch);
  }
}

template <class Use>
void FullCovariances::for_strips(const double* products, Index n_problems, const Use& use) const {
  const Index d = n_features();
  const Index strip = strip_rows(d);
  for (Index begin = 0; begin < d; begin += strip) {
    const Index count = std::min(strip, d - begin);
    const ConstMatrixMap part(products + begin * n_problems, n_problems, count);
    for (Index k = 0; k < n_problems; ++k) use(k, begin, part.row(k));
  }
}

void FullCovariances::bilinear(const Rows& rows, const ConstMatrixRef& W, const ConstMatrixRef& V, MatrixRef out,
                               double* scratch) const {
  out.setZero();
  for (Index i = 0; i < rows.count; ++i) {
    multiply(rows[i], W, scratch, scratch + W.size());
    for_strips(scratch, W.rows(), [&](Index k, Index begin, const auto& strip) {
      out(k, i) += strip.dot(V.row(k).segment(begin, strip.size()));
    });
  }
}

void FullCovariances::squares(const Rows& rows, const ConstMatrixRef& W, MatrixRef out, double* kept,
                              double* scratch) const {
  out.setZero();
  for (Index i = 0; i < rows.count; ++i, kept += W.size()) {
    multiply(rows[i], W, kept, scratch);
    for_strips(kept, W.rows(), [&](Index k, Index begin, const auto& strip) {
      out(k, i) += strip.dot(W.row(k).segment(begin, strip.size()));
    });
  }
}

void FullCovariances::add_kept_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W,
                                        const double* kept, MatrixRef sum, double* /*scratch*/) const {
  for (Index i = 0; i < rows.count; ++i, kept += W.size()) {
    if (a.col(i).isZero(0.0)) continue;
    for_strips(kept, W.rows(), [&](Index k, Index begin, const auto& strip) {
      sum.row(k).segment(begin, strip.size()) += a(k, i) * strip;
    });
  }
}

void FullCovariances::add_weighted_products(const Rows& rows, const ConstMatrixRef& a, const ConstMatrixRef& W,
                                            MatrixRef sum, double* scratch) const {
  for (Index i = 0; i < rows.count; ++i) {
    if (a.col(i).isZero(0.0)) continue;
    multiply(rows[i], W, scratch, scratch + W.size());
    for_strips(scratch, W.rows(), [&](Index k, Index begin, const auto& strip) {
      sum.row(k).segment(begin, strip.size()) += a(k, i) * strip;
    });
  }
}

void FullCovariances::products(const Rows& rows, const ConstVectorRef& w, MatrixRef out, double* scratch) const {
  const Index d = n_features();
  const Index strip = strip_rows(d);
  for (Index i = 0; i < rows.count; ++i) {
    for (Index begin = 0; begin < d; begin += strip) {
      const Index count = std::min(strip, d - begin);
      const ConstMatrixMap S = matrices_.block({rows[i] * d + begin, count}, scratch + strip);
      out.row(i).segment(begin, count).transpose().noalias() = S * w;
    }
  }
}

void FullCovariances::add_weighted_matrices(const Rows& rows, const ConstVectorRef& a, MatrixRef sum,
                                            double* scratch) const {
  const Index d = n_features();
  const Index strip = strip_rows(d);
  for (Index i = 0; i < rows.count; ++i) {
    if (a(i) == 0.0) continue;
    for (Index begin = 0; begin < d; begin += strip) {
      const Index count = std::min(strip, d - begin);
      sum.middleRows(begin, count) += a(i) * matrices_.block({rows[i] * d + begin, count}, scratch + strip);
    }
  }
}

/// By the eigenvectors of the correlations; those of eigenvalues that are rounding are left out.
void FullCovariances::root(Index row, Matrix& out) const {
  const Index d = n_features();
  Vector scratch(d * d);
  const ConstMatrixMap S(matrices_.block({row * d, d}, scratch.data()).data(), d, d);
  const Vector deviations = S.diagonal().cwiseMax(0.0).cwiseSqrt();
  const Vector inverse = deviations.unaryExpr([](double s) { return s > 0.0 ? 1.0 / s : 0.0; });
  linalg::SymmetricEigen eigen;
  eigen.compute(Columns(0.5 * inverse.asDiagonal() * (S + S.transpose()) * inverse.asDiagonal()));
  const Vector& values = eigen.values();  // ascending
  const double rounding = 0x1p-53 * static_cast<double>(d) * values(d - 1);
  const Index rank = (values.array() > rounding).count();
  out = deviations.asDiagonal() * eigen.vectors().rightCols(rank) * values.tail(rank).cwiseSqrt().asDiagonal();
}

void FullCovariances::add_weighted_diagonals(const Rows& rows, const ConstVectorRef& a, VectorRef sum,
                                             double* scratch) const {
  const Index d = n_features();
  for (Index i = 0; i < rows.count; ++i) {
    for (Index j = 0; j < d; ++j) sum(j) += a(i) * *matrices_.values((rows[i] * d + j) * d + j, 1, scratch);
  }
}

void FullCovariances::check(const std::string& argument, const Execution& execution) const {
  const Index d = n_features();
  matrices_.check(argument, -largest_value, "it must be finite", execution, d);
  const double tolerance = tolerance_of(matrices_);
  const Index together = d <= few_features ? linalg::side_by_side : 1;
  const Chunks chunks(n_samples(), together);
  const int n_threads = thread_count(chunks.count(), execution);
  Matrix scratch(n_threads, d * d);
  Matrix lower(n_threads, together > 1 ? linalg::packed_entry(d, 0) : 0);
  std::vector<std::string> errors(static_cast<std::size_t>(chunks.count()));  // so that the first bad row is named
  run_tasks(chunks.count(), execution, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    try {
      for (Index first = chunks.begin(chunk); first < chunks.end(chunk); first += together) {
        checkpoint();
        const Index count = std::min(together, chunks.end(chunk) - first);
        const auto matrix = [&](Index r) { return matrices_.block({(first + r) * d, d}, scratch.row(slot).data()); };
        const std::uint32_t some =
            together > 1 ? doubtful(matrix, count, tolerance, d, lower.row(slot).data()) : bit(0);
        for (Index r = 0; r < count; ++r) {
          if ((some & bit(r)) != 0) check_matrix(matrix(r), tolerance, argument, first + r);
        }
      }
    } catch (const std::invalid_argument& error) {
      errors[static_cast<std::size_t>(chunk)] = error.what();
    }
  });
  for (const auto& error : errors) {
    if (!error.empty()) throw std::invalid_argument(error);
  }
}

}  // namespace halosvm
