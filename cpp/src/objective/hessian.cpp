// The Hessian of one problem as a matrix (spec A.4). With a = dm/du and e = S w / s it is
//     lam I + sum_i c_i [ psi_mm a a' + psi_ms (a e' + e a') + psi_ss e e' + psi_s / s (S - e e') ],
// and psi_mm (a + ratio e)(a + ratio e)' with ratio = psi_ms / psi_mm is most of the first three terms, or all of them.

#include "halosvm/objective/local_objective.hpp"

#include "halosvm/core/check.hpp"
#include "linalg/multiply.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace halosvm {
namespace {

/// Rows in a block: enough for the sum of outer products to run at speed.
constexpr Index hessian_block = 64;

/// Parts of the sum, fixed by the data; each is a matrix.
Index parts(Index n_features) {
  constexpr Index budget = Index{1} << 24;
  return std::clamp<Index>(budget / (8 * (n_features + 1) * (n_features + 1)), 2, 16);
}

struct MatrixSum {
  Matrix matrix;
  void set_zero() { matrix.setZero(); }
  void add(const MatrixSum& other) { matrix += other.matrix; }
};

}  // namespace

/// What one thread needs for one block.
struct LocalObjective::Curvature {
  explicit Curvature(const LocalObjective& objective)
      : work(objective, hessian_block, 1),
        sides(hessian_block, objective.n_features() + 1),
        products(hessian_block, objective.n_features()),
        factors(hessian_block),
        values(6, hessian_block),
        means(hessian_block * objective.n_features()),
        scratch(static_cast<std::size_t>(objective.data().covariances().scratch_size({hessian_block, 1}))) {}

  Workspace work;
  Matrix sides;     ///< rows sqrt(c psi_mm) (a + ratio e)
  Matrix products;  ///< rows e times the root of what is left of their factor
  Vector factors;   ///< c psi_s / s
  Matrix values;    ///< the loss and its derivatives
  Vector means;     ///< memory for a block
  std::vector<double> scratch;
};

/// Fills memory.sides, products and factors for a block.
void LocalObjective::curvature(const Rows& some, const ConstMatrixRef& W, const ConstVectorRef& b,
                               const ConstVectorRef& centre, Curvature& memory) const {
  const Index d = n_features();
  const Index count = some.count;
  const bool spread = loss_->uses_spread();
  margins(some, 0, W, b, memory.work);
  const ConstMatrixMap X = data_.means().block(some, memory.means.data());
  const double* m = memory.work.m_.data();
  const double* s = memory.work.s_.data();
  double* slope_s2 = memory.values.row(2).data();
  double* mm = memory.values.row(3).data();
  double* ms = memory.values.row(4).data();
  double* ss = memory.values.row(5).data();
  loss_->first(count, m, s, memory.values.row(0).data(), memory.values.row(1).data(), slope_s2);
  loss_->second(count, m, s, mm, ms, ss);
  auto products = memory.products.topRows(count);
  if (spread) data_.covariances().products(some, W.row(0).transpose(), products, memory.scratch.data());
  for (Index i = 0; i < count; ++i) {
    const double c = weight(some[i]);
    const double ratio = mm[i] > 0.0 ? ms[i] / mm[i] : 0.0;
    const double inverse = spread && s[i] >= smallest_spread ? 1.0 / s[i] : 0.0;
    auto side = memory.sides.row(i);
    side.head(d) = -memory.work.sign_(0, i) * (X.row(i) - centre.transpose());
    side(d) = fit_intercept_ ? -memory.work.sign_(0, i) : 0.0;
    if (spread) side.head(d) += ratio * inverse * products.row(i);
    side *= std::sqrt(c * mm[i]);
    memory.factors(i) = c * slope_s2[i];
    // psi_ss - ratio psi_ms vanishes for losses of degree 1 in (m, s), and is not negative for convex ones.
    if (spread) products.row(i) *= inverse * std::sqrt(std::max(0.0, c * (slope_s2[i] - ss[i] + ratio * ms[i])));
  }
}

Matrix LocalObjective::hessian(const ConstMatrixRef& W, const ConstVectorRef& b, const ConstVectorRef& centre) const {
  const Index d = n_features();
  if (spread_norm() != 2.0) check::fail("norm", "must be 2 for Hessians");
  BlockMemory<MatrixSum, Curvature> memory;
  MatrixSum sum{Matrix::Zero(d + 1, d + 1)};
  sum_over_blocks(
      Chunks(n_samples(), std::max<Index>(hessian_block, (n_samples() + parts(d) - 1) / parts(d))), hessian_block,
      execution_, memory, [&] { return MatrixSum{Matrix::Zero(d + 1, d + 1)}; }, [&] { return Curvature(*this); },
      [&](Index begin, Index count, Curvature& mine, MatrixSum& part) {
        const Rows some = rows(begin, count);
        curvature(some, W, b, centre, mine);
        linalg::add_gram(mine.sides.topRows(count), part.matrix);
        if (!loss_->uses_spread()) return;
        auto corner = part.matrix.topLeftCorner(d, d);
        data_.covariances().add_weighted_matrices(some, mine.factors.head(count), corner, mine.scratch.data());
        linalg::add_gram(mine.products.topRows(count), corner, -1.0);
      },
      sum);
  Matrix& total = sum.matrix;
  total.diagonal().head(d).array() += regularisation_;
  if (!fit_intercept_) total(d, d) = 1.0;
  return std::move(total);
}

}  // namespace halosvm
