// E step for rows that share errors and missing values: one factorisation for each cell, and products of matrices for
// its rows; with one component the mean and the scatter of the cell say all.

#include "population/expectation.hpp"

#include "halosvm/core/normal.hpp"
#include "linalg/multiply.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::population {
namespace {

constexpr Index block_rows = 128;

/// One cell and one component: T over the values that are there.
struct Factorised {
  Matrix inverse;         ///< L^-1
  Matrix precision;       ///< T^-1
  double constant = 0.0;  ///< -1/2 (log|T| + p log 2 pi) + log a
};

class Cells {
 public:
  Cells(const Population& population, const Measurements::Prepared& data, const Request& request)
      : data_(data),
        request_(request),
        means_(population.means),
        k_(population.n_components()),
        d_(population.n_features()),
        log_weights_(log_weights(population)) {
    for (Index k = 0; k < k_; ++k) covariances_.push_back(population.covariance(k));
  }

  void run(Index begin, Index end, Expectation& out, Checkpoint& checkpoint) {
    if (request_.statistics) out.sums.reset(k_, d_, 0, true);
    auto cell = std::upper_bound(data_.cells.begin(), data_.cells.end(), begin) - data_.cells.begin() - 1;
    for (Index at = begin; at < end; ++cell) {
      const Index stop = std::min(end, data_.cells[static_cast<std::size_t>(cell) + 1]);
      factorise(at, out);
      for (; at < stop && !out.failure.any(); at += std::min(block_rows, stop - at)) {
        checkpoint();
        add_rows(at, std::min(block_rows, stop - at), out);
      }
      if (out.failure.any()) return;
    }
  }

  /// Cell by cell, for one component.
  void run_summed(Index begin, Index end, Expectation& out, Checkpoint& checkpoint) {
    out.sums.reset(k_, d_, 0, true);
    Matrix product;
    Matrix scatter;
    Vector pull;
    for (Index cell = begin; cell < end; ++cell) {
      checkpoint();
      factorise(data_.cells[static_cast<std::size_t>(cell)], out);
      if (out.failure.any()) return;
      const auto p = static_cast<Index>(present_.size());
      const double weight = data_.cell_weights(cell);
      const Factorised& T = factors_[0];
      Vector rest(p);
      scatter.resize(p, p);
      for (Index i = 0; i < p; ++i) {
        const Index row = present_[static_cast<std::size_t>(i)];
        rest(i) = data_.cell_means(cell, row) - means_(0, row);
        for (Index j = 0; j < p; ++j) {
          scatter(i, j) = data_.cell_scatters(cell * d_ + row, present_[static_cast<std::size_t>(j)]);
        }
      }
      // tr(T^-1 scatter) as a sum of squares, tr(L^-1 scatter L^-T).
      linalg::multiply(T.inverse, scatter, product);
      const double within = product.cwiseProduct(T.inverse).sum();
      linalg::multiply(T.inverse, rest, pull);
      out.sums.log_likelihood += weight * T.constant - 0.5 * (within + weight * pull.squaredNorm());
      linalg::multiply(T.inverse.transpose(), Vector(pull), pull);
      out.sums.mass(0) += weight;
      linalg::multiply(T.precision, scatter, product);
      scatter = weight * (pull * pull.transpose() - T.precision);
      linalg::add_product(product, T.precision, scatter);
      scatter_to(0, weight, weight * pull, scatter, out.sums);
    }
  }

 private:
  /// Marks what is there at a position, and factorises T of all components for it.
  void factorise(Index at, Expectation& out) {
    scratch_.resize(std::max(data_.noise.scratch_size(1), block_rows * d_));
    const ConstMatrixMap x = data_.means(at, 1, scratch_.data());
    present_.clear();
    for (Index j = 0; j < d_; ++j) {
      if (!std::isnan(x(0, j))) present_.push_back(j);
    }
    const auto p = static_cast<Index>(present_.size());
    errors_.resize(d_, d_);
    data_.noise.matrix(data_.rows[static_cast<std::size_t>(at)], MatrixMap(errors_.data(), d_, d_), scratch_.data());
    factors_.resize(static_cast<std::size_t>(k_));
    for (Index k = 0; k < k_; ++k) {
      Factorised& T = factors_[static_cast<std::size_t>(k)];
      const Matrix& V = covariances_[static_cast<std::size_t>(k)];
      T.inverse.resize(p, p);
      for (Index i = 0; i < p; ++i) {
        for (Index j = 0; j < p; ++j) {
          const Index a = present_[static_cast<std::size_t>(i)];
          const Index b = present_[static_cast<std::size_t>(j)];
          T.inverse(i, j) = V(a, b) + errors_(a, b);
        }
      }
      if (!cholesky(T.inverse)) {
        out.failure.merge({data_.rows[static_cast<std::size_t>(at)], k});
        return;
      }
      T.constant = log_weights_(k) - 0.5 * (log_determinant(T.inverse) + log_two_pi * static_cast<double>(p));
      invert_lower(T.inverse);
      linalg::multiply(T.inverse.transpose(), T.inverse, T.precision);
    }
  }

  void add_rows(Index at, Index count, Expectation& out) {
    const auto p = static_cast<Index>(present_.size());
    const ConstMatrixMap x = data_.means(at, count, scratch_.data());
    joint_.resize(count, k_);
    pulls_.resize(static_cast<std::size_t>(k_));
    for (Index k = 0; k < k_; ++k) {
      const Factorised& T = factors_[static_cast<std::size_t>(k)];
      residual_.resize(count, p);
      for (Index j = 0; j < p; ++j) {
        const Index column = present_[static_cast<std::size_t>(j)];
        residual_.col(j) = x.col(column).array() - means_(k, column);
      }
      linalg::multiply(residual_, T.inverse.transpose(), whitened_);
      joint_.col(k) = T.constant - 0.5 * whitened_.rowwise().squaredNorm().array();
      if (request_.statistics) linalg::multiply(whitened_, T.inverse, pulls_[static_cast<std::size_t>(k)]);
    }
    if (!weigh(data_, request_, {at, count}, joint_, out) || !request_.statistics) return;
    for (Index k = 0; k < k_; ++k) {
      const Matrix& w = pulls_[static_cast<std::size_t>(k)];
      const double mass = joint_.col(k).sum();
      out.sums.mass(k) += mass;
      residual_ = joint_.col(k).asDiagonal() * w;
      linalg::multiply(residual_.transpose(), w, whitened_);
      whitened_ -= mass * factors_[static_cast<std::size_t>(k)].precision;
      scatter_to(k, mass, residual_.colwise().sum().transpose(), whitened_, out.sums);
    }
  }

  void scatter_to(Index k, double mass, const Vector& pull, const Matrix& curvature, Statistics& sums) const {
    const Matrix& precision = factors_[static_cast<std::size_t>(k)].precision;
    for (Index i = 0; i < pull.size(); ++i) {
      const Index row = present_[static_cast<std::size_t>(i)];
      sums.pull(k, row) += pull(i);
      sums.precision(k, row) += mass * precision(i, i);
      for (Index j = 0; j < pull.size(); ++j) {
        sums.curvature(k * d_ + row, present_[static_cast<std::size_t>(j)]) += curvature(i, j);
      }
    }
  }

  const Measurements::Prepared& data_;
  const Request& request_;
  const Matrix& means_;
  Index k_;
  Index d_;
  Vector log_weights_;
  std::vector<Matrix> covariances_;
  // Memory of the thread that owns this copy.
  std::vector<Index> present_;
  std::vector<Factorised> factors_;
  std::vector<Matrix> pulls_;
  Matrix errors_, residual_, whitened_, joint_;
  Vector scratch_;
};

}  // namespace

void expect_cells(const Population& population, const Measurements::Prepared& data, const Request& request,
                  std::vector<Expectation>& parts, const Execution& execution) {
  const bool summed = population.n_components() == 1 && data.cell_weights.size() > 0 &&
                      request.log_density == nullptr && request.responsibilities == nullptr;
  const Cells engine(population, data, request);
  const Chunks chunks(summed ? data.n_cells() : data.size(), summed ? 1 : 256);
  parts.resize(static_cast<std::size_t>(chunks.count()));
  std::vector<std::unique_ptr<Cells>> own(static_cast<std::size_t>(thread_count(chunks.count(), execution)));
  run_tasks(chunks.count(), execution, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    auto& mine = own[static_cast<std::size_t>(slot)];
    if (!mine) mine = std::make_unique<Cells>(engine);
    Expectation& part = parts[static_cast<std::size_t>(chunk)];
    if (summed) {
      mine->run_summed(chunks.begin(chunk), chunks.end(chunk), part, checkpoint);
    } else {
      mine->run(chunks.begin(chunk), chunks.end(chunk), part, checkpoint);
    }
  });
}

}  // namespace halosvm::population
