// E step for diagonal errors and V = L L' + diag(psi), also without factors: every value is a straight line in h
// factors plus noise of its own, so that T = V + S is never formed. A value that is missing has the error infinity.

#include "population/expectation.hpp"

#include "halosvm/core/normal.hpp"

#include "kernel/lanes.hpp"
#include "linalg/multiply.hpp"
#include "population/latent.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::population {

LatentBlock::LatentBlock(Index d, Index h) : d_(d), h_(h), triangle_(h * (h + 1) / 2), matrix_(h, h), row_(h) {}

void LatentBlock::read(const Measurements::Prepared& data, Index begin, Index count) {
  scratch_.resize(std::max(data.noise.scratch_size(count), count * d_));
  measured = data.means(begin, count, scratch_.data());
  there = measured.array().isNaN().select(0.0, Matrix::Ones(count, d_));
  measured = measured.array().isNaN().select(0.0, measured);
  errors.resize(count, d_);
  data.noise.variances({0, count, data.rows.data() + begin}, MatrixMap(errors.data(), count, d_), scratch_.data());
}

LatentComponent::LatentComponent(const Population& population, Index k)
    : mean(population.means.row(k).transpose()), variances(population.variances.row(k).transpose()) {
  const Index d = population.n_features();
  const Index h = population.n_factors();
  if (h > 0) factors = population.factors.middleRows(k * d, d);
  products.resize(h * (h + 1) / 2, d);
  Index at = 0;
  for (Index a = 0; a < h; ++a) {
    for (Index b = 0; b <= a; ++b, ++at) {
      products.row(at) = factors.col(a).cwiseProduct(factors.col(b)).transpose();
    }
  }
}

Index LatentBlock::condition(const LatentComponent& component) {
  const Index count = measured.rows();
  total = (errors.rowwise() + component.variances.transpose()).array() * there.array() + (1.0 - there.array());
  inverse = there.cwiseQuotient(total);
  // The parts of a deviation that are the feature's own, and those that are left open.
  gain = inverse * component.variances.asDiagonal();
  open = (errors.array() * inverse.array() + (1.0 - there.array())).matrix();
  residual = (measured.rowwise() - component.mean.transpose()).cwiseProduct(there);
  log_volume.resize(count);
  Index bad = count;
  for (Index i = count - 1; i >= 0; --i) {
    if (!(total.row(i).minCoeff() > smallest_variance)) bad = i;
    log_volume(i) = log_product(total.row(i).data()) + log_two_pi * there.row(i).sum();
  }
  if (h_ == 0) {
    distance = inverse.cwiseProduct(residual).cwiseProduct(residual).rowwise().sum();
    shift = gain.cwiseProduct(residual);
    return bad;
  }
  linalg::multiply(inverse, component.products.transpose(), precisions);
  weighted_ = inverse.cwiseProduct(residual);
  linalg::multiply(weighted_, component.factors, latent);
  spreads.resize(count, triangle_);
  for (Index i = 0; i < count; ++i) solve_latent(i);
  linalg::multiply(latent, component.factors.transpose(), shift);
  residual -= shift.cwiseProduct(there);
  // The least value over z of |(x - m - L z) / sd|^2 + |z|^2: squares alone, where Woodbury's formula cancels.
  distance = inverse.cwiseProduct(residual).cwiseProduct(residual).rowwise().sum() + latent.rowwise().squaredNorm();
  shift += gain.cwiseProduct(residual);
  return bad;
}

/// z := M L' D^-1 (x - m) and M = (I + L' D^-1 L)^-1 for row i.
void LatentBlock::solve_latent(Index i) {
  Index at = 0;
  for (Index a = 0; a < h_; ++a) {
    for (Index b = 0; b <= a; ++b, ++at) matrix_(a, b) = precisions(i, at) + (a == b ? 1.0 : 0.0);
  }
  cholesky(matrix_);
  log_volume(i) += log_determinant(matrix_);
  invert_lower(matrix_);
  linalg::multiply(matrix_, latent.row(i).transpose(), row_);
  linalg::multiply(row_.transpose(), matrix_, latent.row(i));
  at = 0;
  for (Index a = 0; a < h_; ++a) {
    for (Index b = 0; b <= a; ++b, ++at) {
      spreads(i, at) = matrix_.col(a).tail(h_ - a).dot(matrix_.col(b).tail(h_ - a));
    }
  }
}

double LatentBlock::log_product(const double* values) const {
  kernels::LogProduct product;
  Index j = 0;
  for (; j + kernels::lanes <= d_; j += kernels::lanes) {
    product.multiply(kernels::load(values + j));
    product.normalise();
  }
  if (j < d_) {
    kernels::Pack last = kernels::Pack::Ones();
    for (Index l = 0; j + l < d_; ++l) last(l) = values[j + l];
    product.multiply(last);
    product.normalise();
  }
  return product.log().sum();
}

namespace {

constexpr Index rows_at_once = 64;

class Latent {
 public:
  Latent(const Population& population, const Measurements::Prepared& data, const Request& request)
      : data_(data),
        request_(request),
        k_(population.n_components()),
        d_(population.n_features()),
        h_(population.n_factors()),
        triangle_(h_ * (h_ + 1) / 2),
        log_weights_(log_weights(population)),
        joint_(rows_at_once, k_) {
    for (Index k = 0; k < k_; ++k) {
      components_.emplace_back(population, k);
      blocks_.emplace_back(d_, h_);
      crosses_.emplace_back(d_, triangle_);
      squares_.emplace_back(d_, triangle_);
    }
  }

  void run(Index begin, Index end, Expectation& out, Checkpoint& checkpoint) {
    if (request_.statistics) {
      out.sums.reset(k_, d_, h_, false);
      for (Matrix& sum : crosses_) sum.setZero();
      for (Matrix& sum : squares_) sum.setZero();
    }
    for (Index at = begin; at < end; at += rows_at_once) {
      checkpoint();
      add_rows(at, std::min(rows_at_once, end - at), out);
      if (out.failure.any()) return;
    }
    if (request_.statistics && h_ > 0) contract(out.sums);
  }

 private:
  void add_rows(Index at, Index count, Expectation& out) {
    blocks_[0].read(data_, at, count);
    for (Index k = 0; k < k_; ++k) {
      LatentBlock& block = blocks_[static_cast<std::size_t>(k)];
      if (k > 0) block.copy_rows(blocks_[0]);
      const Index bad = block.condition(components_[static_cast<std::size_t>(k)]);
      if (bad < count) out.failure.merge({data_.rows[static_cast<std::size_t>(at + bad)], k});
      joint_.col(k).head(count) = log_weights_(k) - 0.5 * (block.distance + block.log_volume).array();
    }
    if (out.failure.any()) return;
    if (!weigh(data_, request_, {at, count}, joint_, out) || !request_.statistics) return;
    for (Index k = 0; k < k_; ++k) accumulate(k, joint_.col(k).head(count), out.sums);
  }

  void accumulate(Index k, const ConstVectorRef& given, Statistics& sums) {
    LatentBlock& block = blocks_[static_cast<std::size_t>(k)];
    const Vector r = given;
    sums.mass(k) += r.sum();
    linalg::add_product(r.transpose(), block.inverse, sums.precision.row(k));
    linalg::add_product(r.transpose(), block.shift, sums.shift.row(k));
    const Vector& variances = components_[static_cast<std::size_t>(k)].variances;
    spreads_ = block.shift.cwiseAbs2() + block.open * variances.asDiagonal();
    linalg::add_product(r.transpose(), spreads_, sums.spread.row(k));
    if (h_ == 0) return;
    weighted_ = r.asDiagonal() * block.latent;
    sums.latent.row(k) += weighted_.colwise().sum();
    linalg::add_product(block.shift.transpose(), weighted_, sums.cross.middleRows(k * d_, d_));
    linalg::add_product(block.latent.transpose(), weighted_, sums.square.middleRows(k * h_, h_));
    weighted_ = r.asDiagonal() * block.spreads;
    linalg::add_product(block.open.transpose(), weighted_, crosses_[static_cast<std::size_t>(k)]);
    weighted_open_ = block.open.cwiseAbs2();
    linalg::add_product(weighted_open_.transpose(), weighted_, squares_[static_cast<std::size_t>(k)]);
    Index at = 0;
    for (Index a = 0; a < h_; ++a) {
      for (Index b = 0; b <= a; ++b, ++at) {
        const double sum = weighted_.col(at).sum();
        sums.square(k * h_ + a, b) += sum;
        if (a != b) sums.square(k * h_ + b, a) += sum;
      }
    }
  }

  /// The spreads M of the rows enter cross and spread multiplied by L, which is the same for all of them.
  void contract(Statistics& sums) const {
    Matrix M(h_, h_);
    Vector row(h_);
    for (Index k = 0; k < k_; ++k) {
      const Matrix& L = components_[static_cast<std::size_t>(k)].factors;
      for (Index j = 0; j < d_; ++j) {
        unpack(crosses_[static_cast<std::size_t>(k)].row(j), M);
        linalg::add_product(L.row(j), M, sums.cross.row(k * d_ + j));
        unpack(squares_[static_cast<std::size_t>(k)].row(j), M);
        linalg::multiply(M, L.row(j).transpose(), row);
        sums.spread(k, j) += L.row(j).dot(row);
      }
    }
  }

  template <class Row>
  void unpack(const Row& packed, Matrix& M) const {
    Index at = 0;
    for (Index a = 0; a < h_; ++a) {
      for (Index b = 0; b <= a; ++b, ++at) M(a, b) = M(b, a) = packed(at);
    }
  }

  const Measurements::Prepared& data_;
  const Request& request_;
  Index k_;
  Index d_;
  Index h_;
  Index triangle_;
  Vector log_weights_;
  std::vector<LatentComponent> components_;
  // Memory of the thread that owns this copy.
  std::vector<LatentBlock> blocks_;
  std::vector<Matrix> crosses_, squares_;
  Matrix joint_, weighted_, weighted_open_, spreads_;
};

}  // namespace

void expect_latent(const Population& population, const Measurements::Prepared& data, const Request& request,
                   std::vector<Expectation>& parts, const Execution& execution) {
  const Latent engine(population, data, request);
  const Chunks chunks(data.size(), rows_at_once);
  parts.resize(static_cast<std::size_t>(chunks.count()));
  std::vector<std::unique_ptr<Latent>> own(static_cast<std::size_t>(thread_count(chunks.count(), execution)));
  run_tasks(chunks.count(), execution, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    auto& mine = own[static_cast<std::size_t>(slot)];
    if (!mine) mine = std::make_unique<Latent>(engine);
    mine->run(chunks.begin(chunk), chunks.end(chunk), parts[static_cast<std::size_t>(chunk)], checkpoint);
  });
}

}  // namespace halosvm::population
