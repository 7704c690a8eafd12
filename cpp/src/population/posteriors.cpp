// Posteriors: a population and measurements enter, what is known of each true value leaves, in the smallest exact kind.

#include "halosvm/core/check.hpp"
#include "population/expectation.hpp"
#include "population/latent.hpp"
#include "population/limited.hpp"

#include "linalg/multiply.hpp"
#include "linalg/pivoted_cholesky.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm {
namespace {

using population::LatentBlock;
using population::LatentComponent;

constexpr Index rows_of_task = 64;

/// What all threads of a pass know.
struct Pass {
  const Population& population;
  const Measurements::Prepared& data;
  const PosteriorTarget& target;
  const double* responsibilities;
  Index rank;
  bool joined;

  Index k() const { return population.n_components(); }
  Index d() const { return population.n_features(); }
  double r(Index row, Index component) const { return responsibilities[row * k() + component]; }
  MatrixMap rows(double* array, Index row, Index per_row) const {
    const Index c = joined ? 1 : k();
    return {array + row * c * per_row * d(), c * per_row, d()};
  }
};

/// out = A B (+= if \p add), without packing where that costs more than the product.
void multiply_small(const linalg::Factor& A, const linalg::Factor& B, Matrix& out, bool add = false) {
  constexpr Index small = 12;
  if (!add) out.setZero();
  if (A.cols <= small) {
    linalg::add_thin_product(A, B, out);
  } else {
    linalg::add_product(A, B, out);
  }
}

/// Errors that are diagonal, and factors or none.
class LatentWriter {
 public:
  explicit LatentWriter(const Pass& pass) : pass_(pass), h_(pass.population.n_factors()) {
    for (Index k = 0; k < pass.k(); ++k) {
      components_.emplace_back(pass.population, k);
      blocks_.emplace_back(pass.d(), h_);
    }
    means_.resize(components_.size());
    if (pass.data.n_limited() > 0) limited_ = std::make_unique<population::LimitedRow>(pass.population, pass.data);
  }

  /// Rows without limits, or one with limits.
  void write(Index begin, Index count) {
    const bool limited = begin >= pass_.data.size();
    blocks_[0].read(pass_.data, begin, count);
    if (limited) limited_->read(begin);
    for (Index k = 0; k < pass_.k(); ++k) {
      LatentBlock& block = blocks_[static_cast<std::size_t>(k)];
      if (k > 0) block.copy_rows(blocks_[0]);
      if (limited) limited_->place(k, block);
      block.condition(components_[static_cast<std::size_t>(k)]);
      Matrix& mean = means_[static_cast<std::size_t>(k)];
      mean = block.shift.rowwise() + components_[static_cast<std::size_t>(k)].mean.transpose();
      mean = (block.there.array() > 0.0 && block.errors.array() == 0.0).select(block.measured, mean);
    }
    for (Index i = 0; i < count; ++i) {
      const Index row = pass_.data.rows[static_cast<std::size_t>(begin + i)];
      if (pass_.joined) {
        write_joined(i, row);
      } else {
        write_components(i, row);
      }
    }
  }

 private:
  void write_components(Index i, Index row) {
    for (Index k = 0; k < pass_.k(); ++k) {
      pass_.rows(pass_.target.means, row, 1).row(k) = means_[static_cast<std::size_t>(k)].row(i);
      variances_ = own_variances(k, i);
      columns_.resize(pass_.d(), h_);
      write_columns(k, i, 1.0, columns_);
      write_covariance(row, k);
    }
  }

  void write_joined(Index i, Index row) {
    // About the first component: where all agree, as on what is certain, the mean is theirs to the last bit.
    mean_ = means_[0].row(i).transpose();
    variances_.setZero(pass_.d());
    for (Index k = 0; k < pass_.k(); ++k) {
      mean_ += pass_.r(row, k) * (means_[static_cast<std::size_t>(k)].row(i) - means_[0].row(i)).transpose();
      variances_ += pass_.r(row, k) * own_variances(k, i);
    }
    pass_.rows(pass_.target.means, row, 1).row(0) = mean_.transpose();
    const Index each = h_ + (pass_.k() > 1 ? 1 : 0);
    columns_.resize(pass_.d(), each * pass_.k());
    for (Index k = 0; k < pass_.k(); ++k) {
      const double root = std::sqrt(pass_.r(row, k));
      write_columns(k, i, root, columns_.middleCols(k * each, h_));
      if (each > h_) {
        columns_.col(k * each + h_) = root * (means_[static_cast<std::size_t>(k)].row(i).transpose() - mean_);
      }
    }
    write_covariance(row, 0);
  }

  Vector own_variances(Index k, Index i) const {
    const LatentBlock& block = blocks_[static_cast<std::size_t>(k)];
    return block.open.row(i).transpose().cwiseProduct(components_[static_cast<std::size_t>(k)].variances);
  }

  /// out = root (open L) C with M = C C'.
  void write_columns(Index k, Index i, double root, MatrixRef out) {
    if (h_ == 0) return;
    const LatentBlock& block = blocks_[static_cast<std::size_t>(k)];
    Matrix C = Matrix::Zero(h_, h_);
    Index at = 0;
    for (Index a = 0; a < h_; ++a) {
      for (Index b = 0; b <= a; ++b, ++at) C(a, b) = block.spreads(i, at);
    }
    population::cholesky(C);
    linalg::multiply(components_[static_cast<std::size_t>(k)].factors, C, out);
    out.array().colwise() *= root * block.open.row(i).transpose().array();
  }

  void write_covariance(Index row, Index component) {
    const Index d = pass_.d();
    if (pass_.target.matrices == nullptr && pass_.target.variances == nullptr) return;
    if (pass_.target.matrices != nullptr) {
      auto out = pass_.rows(pass_.target.matrices, row, d).middleRows(component * d, d);
      linalg::multiply(columns_, columns_.transpose(), out);
      out.diagonal() += variances_;
      return;
    }
    pass_.rows(pass_.target.variances, row, 1).row(component) = variances_.transpose();
    if (pass_.rank == 0) return;
    const Index c = pass_.joined ? 1 : pass_.k();
    MatrixMap(pass_.target.factors + (row * c + component) * d * pass_.rank, d, pass_.rank) = columns_;
  }

  Pass pass_;
  Index h_;
  std::vector<LatentComponent> components_;
  std::vector<LatentBlock> blocks_;
  std::unique_ptr<population::LimitedRow> limited_;
  std::vector<Matrix> means_;
  Vector mean_, variances_;
  Matrix columns_;
};

/// Any errors, any covariance: one factorisation of T for all rows of a cell.
class FactorisedWriter {
 public:
  explicit FactorisedWriter(const Pass& pass) : pass_(pass) {
    for (Index k = 0; k < pass.k(); ++k) {
      covariances_.push_back(pass.population.covariance(k));
      if (pass.target.matrices != nullptr) roots_.push_back(linalg::pivoted_cholesky(covariances_.back()));
    }
    cells_.resize(covariances_.size());
    scratch_.resize(pass.data.noise.scratch_size(1));
    errors_.resize(pass.d(), pass.d());
    if (pass.data.n_limited() > 0) limited_ = std::make_unique<population::LimitedRow>(pass.population, pass.data);
  }

  /// Makes the gains and covariances for rows like that at a position.
  void prepare(Index position) {
    const Index d = pass_.d();
    const Index row = pass_.data.rows[static_cast<std::size_t>(position)];
    read(position);
    present_.clear();
    for (Index j = 0; j < d; ++j) {
      if (!std::isnan(x_(j))) present_.push_back(j);
    }
    pass_.data.noise.matrix(row, MatrixMap(errors_.data(), d, d), scratch_.data());
    const auto p = static_cast<Index>(present_.size());
    S_.resize(p, p);
    for (Index i = 0; i < p; ++i) {
      for (Index j = 0; j < p; ++j) S_(i, j) = errors_(present(i), present(j));
    }
    if (pass_.target.matrices != nullptr) S_root_ = linalg::pivoted_cholesky(S_);
    for (Index k = 0; k < pass_.k(); ++k) prepare_component(k);
  }

  void write(Index position) {
    const Index row = pass_.data.rows[static_cast<std::size_t>(position)];
    const Index d = pass_.d();
    const bool limited = position >= pass_.data.size();
    read(position);
    if (limited) limited_->read(position);
    means_.resize(pass_.k(), d);
    for (Index k = 0; k < pass_.k(); ++k) {
      if (limited) {
        limited_->place(k, present_, x_, S_, S_root_);
        prepare_component(k);
      }
      set_mean(k);
    }
    if (!pass_.joined) {
      pass_.rows(pass_.target.means, row, 1) = means_;
      if (pass_.target.matrices == nullptr) return;
      MatrixMap out = pass_.rows(pass_.target.matrices, row, d);
      for (Index k = 0; k < pass_.k(); ++k) out.middleRows(k * d, d) = cells_[static_cast<std::size_t>(k)].covariance;
      return;
    }
    // About the first component: where all agree, as on what is certain, the mean is theirs to the last bit.
    mean_ = means_.row(0).transpose();
    for (Index k = 1; k < pass_.k(); ++k) mean_ += pass_.r(row, k) * (means_.row(k) - means_.row(0)).transpose();
    pass_.rows(pass_.target.means, row, 1).row(0) = mean_.transpose();
    if (pass_.target.matrices == nullptr) return;
    MatrixMap out = pass_.rows(pass_.target.matrices, row, d);
    out.setZero();
    for (Index k = 0; k < pass_.k(); ++k) {
      apart_ = means_.row(k).transpose() - mean_;
      out += pass_.r(row, k) * cells_[static_cast<std::size_t>(k)].covariance;
      out.noalias() += (pass_.r(row, k) * apart_) * apart_.transpose();
    }
  }

 private:
  struct Cell {
    Matrix precision;   ///< T^-1, p x p
    Matrix cross;       ///< V R', d x p
    Matrix covariance;  ///< B, d x d
  };

  Index present(Index i) const { return present_[static_cast<std::size_t>(i)]; }

  void read(Index position) {
    scratch_.resize(std::max(scratch_.size(), pass_.d()));
    x_ = pass_.data.means(position, 1, scratch_.data()).row(0).transpose();
  }

  void prepare_component(Index k) {
    Cell& cell = cells_[static_cast<std::size_t>(k)];
    const Matrix& V = covariances_[static_cast<std::size_t>(k)];
    const Index d = pass_.d();
    const auto p = static_cast<Index>(present_.size());
    cell.cross.resize(d, p);
    for (Index j = 0; j < p; ++j) cell.cross.col(j) = V.col(present(j));
    root_.resize(p, p);
    for (Index i = 0; i < p; ++i) root_.row(i) = cell.cross.row(present(i)) + S_.row(i);
    population::cholesky(root_);
    population::invert_lower(root_);
    cell.precision.resize(p, p);
    multiply_small(root_.transpose(), root_, cell.precision);
    if (pass_.target.matrices == nullptr) return;
    if (p == 0) {  // nothing was measured: to the last bit the population's
      cell.covariance = V;
      return;
    }
    // Joseph's form, B = A V A' + K S K', A = I - K R, as products of factors with themselves: nearly 0, too, they have
    // no negative eigenvalue but for rounding of their own size. Where a value is there, the row of A is that of S
    // T^-1.
    gain_.resize(d, p);
    multiply_small(cell.cross, cell.precision, gain_);
    rest_.resize(p, p);
    multiply_small(S_, cell.precision, rest_);
    A_.setIdentity(d, d);
    for (Index j = 0; j < p; ++j) A_.col(present(j)) = -gain_.col(j);
    for (Index i = 0; i < p; ++i) {
      A_.row(present(i)).setZero();
      for (Index j = 0; j < p; ++j) A_(present(i), present(j)) = rest_(i, j);
    }
    cell.covariance.resize(d, d);
    const Eigen::MatrixXd& root = roots_[static_cast<std::size_t>(k)];
    product_.resize(d, root.cols());
    multiply_small(A_, root, product_);
    multiply_small(product_, product_.transpose(), cell.covariance);
    product_.resize(d, S_root_.cols());
    multiply_small(gain_, S_root_, product_);
    multiply_small(product_, product_.transpose(), cell.covariance, true);
    cell.covariance = (0.5 * (cell.covariance + cell.covariance.transpose())).eval();
  }

  /// b = m + V R'w, or x - S w where the error is the smaller part: the small term carries the rounding.
  void set_mean(Index k) {
    const Cell& cell = cells_[static_cast<std::size_t>(k)];
    const Matrix& V = covariances_[static_cast<std::size_t>(k)];
    const auto p = static_cast<Index>(present_.size());
    residual_.resize(p);
    for (Index j = 0; j < p; ++j) residual_(j) = x_(present(j)) - pass_.population.means(k, present(j));
    linalg::multiply(cell.precision, residual_, pull_);
    means_.row(k) = pass_.population.means.row(k);
    linalg::add_product(cell.cross, pull_, means_.row(k).transpose());
    for (Index j = 0; j < p; ++j) {
      if (S_(j, j) <= V(present(j), present(j))) means_(k, present(j)) = x_(present(j)) - S_.row(j).dot(pull_);
    }
  }

  Pass pass_;
  std::vector<Matrix> covariances_;
  std::vector<Eigen::MatrixXd> roots_;  ///< of the covariances
  Eigen::MatrixXd S_root_;
  std::vector<Cell> cells_;
  std::vector<Index> present_;
  std::unique_ptr<population::LimitedRow> limited_;
  Vector x_, residual_, pull_, mean_, apart_, scratch_;
  Matrix errors_, S_, root_, gain_, rest_, A_, product_, means_;
};

}  // namespace

Posteriors::Posteriors(const Population& population, const Gaussians& X, bool joined, const Execution& execution,
                       const Limits& limits)
    : population_(population),
      measurements_(X, nullptr, execution, limits),
      execution_(execution),
      joined_(joined || population.n_components() == 1) {
  const Measurements::Prepared& data = measurements_.prepared();
  population.check("population");
  check::same_size("X", data.n_features(), "the population", population.n_features(), "features");
  const Index k = population.n_components();
  const Index h = population.n_factors();
  if (data.noise.zero() && !data.any_missing && data.n_limited() == 0) {
    kind_ = Kind::zero;
    return;
  }
  if (!population::is_latent(population, data)) return;
  rank_ = joined_ && k > 1 ? k * (h + 1) : h;
  kind_ = rank_ == 0 ? Kind::diagonal : Kind::low_rank;
  if (rank_ >= population.n_features()) kind_ = Kind::full;
}

void Posteriors::write(const PosteriorTarget& target) const {
  const Measurements::Prepared& data = measurements_.prepared();
  std::vector<double> memory;
  double* responsibilities = target.responsibilities;
  if (responsibilities == nullptr) {
    memory.resize(static_cast<std::size_t>(data.data.n_samples() * population_.n_components()));
    responsibilities = memory.data();
  }
  population::Expectation result;
  population::Request request;
  request.responsibilities = responsibilities;
  population::expect(population_, data, request, result, execution_);
  if (result.failure.any()) result.failure.raise();
  if (population::is_latent(population_, data)) {
    write_latent(target, responsibilities);
  } else {
    write_factorised(target, responsibilities);
  }
}

void Posteriors::write_latent(const PosteriorTarget& target, const double* responsibilities) const {
  const Measurements::Prepared& data = measurements_.prepared();
  const Pass pass{population_, data, target, responsibilities, rank_, joined_};
  const Chunks chunks(data.n_rows(), rows_of_task);
  std::vector<std::unique_ptr<LatentWriter>> own(static_cast<std::size_t>(thread_count(chunks.count(), execution_)));
  run_tasks(chunks.count(), execution_, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    auto& mine = own[static_cast<std::size_t>(slot)];
    if (!mine) mine = std::make_unique<LatentWriter>(pass);
    const Index plain_end = std::min(chunks.end(chunk), data.size());
    Index at = chunks.begin(chunk);
    for (; at < plain_end; at += std::min(rows_of_task, plain_end - at)) {
      checkpoint();
      mine->write(at, std::min(rows_of_task, plain_end - at));
    }
    for (; at < chunks.end(chunk); ++at) {
      checkpoint();
      mine->write(at, 1);
    }
  });
}

void Posteriors::write_factorised(const PosteriorTarget& target, const double* responsibilities) const {
  const Measurements::Prepared& data = measurements_.prepared();
  const Pass pass{population_, data, target, responsibilities, rank_, joined_};
  const Chunks chunks(data.n_rows(), rows_of_task);
  std::vector<std::unique_ptr<FactorisedWriter>> own(
      static_cast<std::size_t>(thread_count(chunks.count(), execution_)));
  run_tasks(chunks.count(), execution_, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    auto& mine = own[static_cast<std::size_t>(slot)];
    if (!mine) mine = std::make_unique<FactorisedWriter>(pass);
    Index cell_end = chunks.begin(chunk);
    for (Index at = chunks.begin(chunk); at < chunks.end(chunk); ++at) {
      checkpoint();
      if (at == cell_end && at < data.size()) {
        mine->prepare(at);
        cell_end = data.shared ? *std::upper_bound(data.cells.begin(), data.cells.end(), at) : at + 1;
      }
      mine->write(at);
    }
  });
}

}  // namespace halosvm
