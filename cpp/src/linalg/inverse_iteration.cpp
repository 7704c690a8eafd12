// Eigenvectors of a symmetric tridiagonal matrix from its eigenvalues.

#include "linalg/inverse_iteration.hpp"

#include "linalg/orthonormal_columns.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace halosvm::linalg {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// P L U = T - shift I by Gaussian elimination with row exchanges, and solutions of it.
class ShiftedTridiagonal {
 public:
  ShiftedTridiagonal(const ConstVectorRef& diagonal, const ConstVectorRef& subdiagonal)
      : diagonal_(diagonal),
        subdiagonal_(subdiagonal),
        inverse_pivot_(diagonal.size()),
        above_(diagonal.size()),
        second_above_(diagonal.size()),
        multiplier_(diagonal.size()),
        exchanged_(static_cast<std::size_t>(diagonal.size())) {}

  /// \param smallest stands in for pivots that are 0.
  void factorise(double shift, double smallest) {
    const Index n = diagonal_.size();
    double pivot = diagonal_(0) - shift;
    double right = n > 1 ? subdiagonal_(0) : 0.0;
    for (Index i = 0; i + 1 < n; ++i) {
      const double below = subdiagonal_(i);
      const double next_diagonal = diagonal_(i + 1) - shift;
      const double next_right = i + 2 < n ? subdiagonal_(i + 1) : 0.0;
      const bool exchange = std::abs(below) > std::abs(pivot);
      exchanged_[static_cast<std::size_t>(i)] = exchange ? 1 : 0;
      if (exchange) {
        inverse_pivot_(i) = 1.0 / below;
        above_(i) = next_diagonal;
        second_above_(i) = next_right;
        multiplier_(i) = pivot * inverse_pivot_(i);
        pivot = right - multiplier_(i) * next_diagonal;
        right = -multiplier_(i) * next_right;
      } else {
        inverse_pivot_(i) = 1.0 / (pivot == 0.0 ? smallest : pivot);
        above_(i) = right;
        second_above_(i) = 0.0;
        multiplier_(i) = below * inverse_pivot_(i);
        pivot = next_diagonal - multiplier_(i) * right;
        right = next_right;
      }
    }
    inverse_pivot_(n - 1) = 1.0 / (std::abs(pivot) < smallest ? smallest : pivot);
    above_(n - 1) = second_above_(n - 1) = 0.0;
  }

  /// x = L^-1 P x.
  void eliminate(double* x) const {
    for (Index i = 0; i + 1 < diagonal_.size(); ++i) {
      if (exchanged_[static_cast<std::size_t>(i)] != 0) std::swap(x[i], x[i + 1]);
      x[i + 1] -= multiplier_(i) * x[i];
    }
  }

  /// x = U^-1 x.
  void substitute(double* x) const {
    double next = 0.0;
    double after = 0.0;
    for (Index i = diagonal_.size() - 1; i >= 0; --i) {
      x[i] = (x[i] - above_(i) * next - second_above_(i) * after) * inverse_pivot_(i);
      after = next;
      next = x[i];
    }
  }

 private:
  const ConstVectorRef& diagonal_;
  const ConstVectorRef& subdiagonal_;
  Vector inverse_pivot_;
  Vector above_;
  Vector second_above_;
  Vector multiplier_;
  std::vector<std::uint8_t> exchanged_;
};

double largest_residual(const ConstVectorRef& diagonal, const ConstVectorRef& subdiagonal,
                        const ConstVectorRef& eigenvalues, const Columns& vectors) {
  const Index n = diagonal.size();
  double largest = 0.0;
  Vector residual(n);
  for (Index j = 0; j < vectors.cols(); ++j) {
    const auto v = vectors.col(j);
    residual = (diagonal.array() - eigenvalues(j)) * v.array();
    residual.head(n - 1).array() += subdiagonal.array() * v.tail(n - 1).array();
    residual.tail(n - 1).array() += subdiagonal.array() * v.head(n - 1).array();
    largest = std::max(largest, residual.norm());
  }
  return largest;
}

}  // namespace

bool inverse_iteration(const ConstVectorRef& diagonal, const ConstVectorRef& subdiagonal,
                       const ConstVectorRef& eigenvalues, Columns& vectors) {
  const Index n = diagonal.size();
  const Index k = eigenvalues.size();
  vectors.resize(n, k);
  if (k == 0) return true;
  const double norm = diagonal.cwiseAbs().maxCoeff() + 2.0 * (n > 1 ? subdiagonal.cwiseAbs().maxCoeff() : 0.0);
  ShiftedTridiagonal shifted(diagonal, subdiagonal);
  Vector starts(n + k);
  fill_at_random(starts);
  // Shifts move by a few roundings for each of a set of equal eigenvalues, and eigenvalues are only as good.
  const double rounding = 8.0 * static_cast<double>(n) * epsilon * norm;
  double shift = infinity;
  for (Index j = 0; j < k; ++j) {
    // Equal shifts would turn different starts into one vector.
    shift = std::min(eigenvalues(j), shift - 4.0 * epsilon * norm);
    shifted.factorise(shift, epsilon * norm);
    auto x = vectors.col(j);
    x = starts.segment(j, n);
    shifted.substitute(x.data());  // the start may as well be one that elimination has seen already
    constexpr int most_iterations = 4;
    for (int iteration = 1; iteration <= most_iterations; ++iteration) {
      x.normalize();
      shifted.eliminate(x.data());
      shifted.substitute(x.data());
      // The residual of the solution is 1 / |x|.
      if (x.norm() * rounding > 4.0) break;
    }
    x.normalize();
  }
  Columns triangle;
  if (!orthonormalise_by_cholesky(vectors, triangle)) return false;
  if (triangle.diagonal().minCoeff() < 0.5 && !orthonormalise_by_cholesky(vectors, triangle)) return false;
  return largest_residual(diagonal, subdiagonal, eigenvalues, vectors) <= rounding;
}

}  // namespace halosvm::linalg
