// The Hessian of one problem as a matrix (spec A.4). With a = dm/du and e = S w / s it is
//     lam I + sum_i c_i [ psi_mm a a' + psi_ms (a e' + e a') + psi_ss e e' + psi_s / s (S - e e') ],
// and psi_mm (a + ratio e)(a + ratio e)' with ratio = psi_ms / psi_mm is most of the first three terms, or all of them.

#include "halosvm/objective.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace halosvm {
namespace {

/// Rows in a block: enough for the sum of outer products to run at speed.
constexpr Index block = 64;

/// Parts of the sum, fixed by the data; each is a matrix.
Index parts(Index n_features) {
  constexpr Index budget = Index{1} << 26;
  return std::clamp<Index>(budget / (8 * (n_features + 1) * (n_features + 1)), 2, 16);
}

/// What one thread needs for one block.
struct Memory {
  Memory(Index n_features, Index scratch_size)
      : sides(block, n_features + 1),
        products(block, n_features),
        values(6, block),
        scratch(static_cast<std::size_t>(scratch_size)) {}

  Matrix sides;     ///< rows a, then sqrt(c psi_mm) (a + ratio e)
  Matrix products;  ///< rows S w, then sqrt(|rest|) e
  Matrix values;    ///< the loss and its derivatives
  std::vector<double> scratch;
};

}  // namespace

Matrix Objective::hessian(const ConstMatrixRef& W, const ConstVectorRef& b, const ConstVectorRef& centre) const {
  const Index d = n_features();
  const bool spread = loss_->uses_spread();
  const Covariances& covariances = data_.covariances();
  const Chunks chunks(n_samples(), std::max<Index>(block, (n_samples() + parts(d) - 1) / parts(d)));
  const auto n_threads = static_cast<std::size_t>(thread_count(chunks.count(), execution_));
  std::vector<Matrix> sums(static_cast<std::size_t>(chunks.count()), Matrix::Zero(d + 1, d + 1));
  std::vector<Memory> memory(n_threads, Memory(d, covariances.scratch_size({block, 1})));
  std::vector<Workspace> work(n_threads, Workspace(*this, block, 1));
  run_tasks(chunks.count(), execution_, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    Memory& mine = memory[static_cast<std::size_t>(slot)];
    Workspace& its = work[static_cast<std::size_t>(slot)];
    Matrix& sum = sums[static_cast<std::size_t>(chunk)];
    for (Index begin = chunks.begin(chunk); begin < chunks.end(chunk); begin += block) {
      checkpoint();
      const Rows some = rows(begin, std::min(block, chunks.end(chunk) - begin));
      const Index count = some.count;
      const ConstMatrixMap X = margins(some, 0, W, b, its);
      const double* m = its.m_.data();
      const double* s = its.s_.data();
      double* slope_s2 = mine.values.row(2).data();
      double* mm = mine.values.row(3).data();
      double* ms = mine.values.row(4).data();
      double* ss = mine.values.row(5).data();
      loss_->first(count, m, s, mine.values.row(0).data(), mine.values.row(1).data(), slope_s2);
      loss_->second(count, m, s, mm, ms, ss);
      auto sides = mine.sides.topRows(count);
      auto products = mine.products.topRows(count);
      if (spread) covariances.products(some, W.row(0).transpose(), products, mine.scratch.data());
      sides.leftCols(d) = X.rowwise() - centre.transpose();
      sides.col(d).setConstant(fit_intercept_ ? 1.0 : 0.0);
      Vector curvature(count);
      for (Index i = 0; i < count; ++i) {
        const double c = weight(some[i]);
        const double ratio = mm[i] > 0.0 ? ms[i] / mm[i] : 0.0;
        const double inverse = spread && s[i] >= smallest_spread ? 1.0 / s[i] : 0.0;
        sides.row(i) *= -its.sign_(0, i);
        if (spread) sides.row(i).head(d) += ratio * inverse * products.row(i);
        sides.row(i) *= std::sqrt(c * mm[i]);
        curvature(i) = c * slope_s2[i];
        // psi_ss - ratio psi_ms vanishes for losses of degree 1 in (m, s), and is not negative for convex ones.
        if (spread) products.row(i) *= inverse * std::sqrt(std::max(0.0, c * (slope_s2[i] - ss[i] + ratio * ms[i])));
      }
      sum.selfadjointView<Eigen::Lower>().rankUpdate(sides.transpose());
      if (!spread) continue;
      auto corner = sum.topLeftCorner(d, d);
      covariances.add_weighted_matrices(some, curvature, corner, mine.scratch.data());
      corner.selfadjointView<Eigen::Lower>().rankUpdate(products.transpose(), -1.0);
    }
  });
  Matrix total = std::move(sums.front());
  for (std::size_t part = 1; part < sums.size(); ++part) total += sums[part];
  total.diagonal().head(d).array() += regularisation_;
  if (!fit_intercept_) total(d, d) = 1.0;
  return total;
}

}  // namespace halosvm
