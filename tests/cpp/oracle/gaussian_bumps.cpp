// Bumps integrated over Gaussians, compiled once.

#include "oracle/gaussian_bumps.hpp"

#include "oracle/cholesky.hpp"

#include <cmath>
#include <limits>

namespace oracle {
namespace {

/// Of C the lower triangle is read. Overwrites both.
double bump(double* C, double* D, Index n) {
  if (!factorise(C, n)) return std::numeric_limits<double>::quiet_NaN();
  solve(C, n, D);
  double square = 0.0;
  double root = 1.0;  // of the determinant
  for (Index i = 0; i < n; ++i) {
    square += D[i] * D[i];
    root *= C[i * n + i];
  }
  return std::exp(-0.5 * square) / root;
}

}  // namespace

double bump(Matrix C, Vector D) { return bump(C.data(), D.data(), D.size()); }

BumpMoments::BumpMoments(const Vector& mean, const Matrix& S, const Matrix& centres, const std::vector<Matrix>& T)
    : first(centres.rows()), covariance(centres.rows(), centres.rows()) {
  const Index d = mean.size();
  const double* s = S.data();
  std::vector<double> C(static_cast<std::size_t>(4 * d * d));
  std::vector<double> D(static_cast<std::size_t>(2 * d));
  // One bump, or both at once: their differences are N(mean - centres, C), where C has S off its diagonal blocks.
  const auto set = [&](Index centre, Index from, Index width) {
    const double* t = T[static_cast<std::size_t>(centre)].data();
    const double* z = centres.data() + centre * d;
    for (Index a = 0; a < d; ++a) {
      double* row = C.data() + (from + a) * width;
      for (Index b = 0; b < from; ++b) row[b] = s[a * d + b];
      for (Index b = 0; b < d; ++b) row[from + b] = (a == b ? 1.0 : 0.0) + s[a * d + b] + t[a * d + b];
      D[static_cast<std::size_t>(from + a)] = mean(a) - z[a];
    }
  };
  for (Index j = 0; j < first.size(); ++j) {
    set(j, 0, d);
    first(j) = bump(C.data(), D.data(), d);
    for (Index l = 0; l <= j; ++l) {
      set(j, 0, 2 * d);
      set(l, d, 2 * d);
      covariance(j, l) = covariance(l, j) = bump(C.data(), D.data(), 2 * d) - first(j) * first(l);
    }
  }
}

}  // namespace oracle
