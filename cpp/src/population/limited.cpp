// E step of rows with limits: T splits into what was read and what is limited; the rest is a Gaussian within limits.

#include "population/limited.hpp"

#include "halosvm/core/normal.hpp"
#include "linalg/multiply.hpp"
#include "linalg/pivoted_cholesky.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::population {

LimitedRow::LimitedRow(const Population& population, const Measurements::Prepared& data)
    : population_(population), data_(data), log_weights_(log_weights(population)) {
  const Index d = population.n_features();
  for (Index k = 0; k < population.n_components(); ++k) covariances_.push_back(population.covariance(k));
  errors_.resize(d, d);
  scratch_.resize(std::max(data.noise.scratch_size(1), d));
}

void LimitedRow::read(Index position) {
  const Index d = population_.n_features();
  const Index row = data_.rows[static_cast<std::size_t>(position)];
  entry_ = row * d;
  x_ = data_.means(position, 1, scratch_.data()).row(0).transpose();
  present_.clear();
  for (Index j = 0; j < d; ++j) {
    if (x_(j) == x_(j)) present_.push_back(j);
  }
  n_read_ = n_present();
  for (Index j = 0; j < d; ++j) {
    if (data_.limits.at(entry_ + j)) present_.push_back(j);
  }
  data_.noise.matrix(row, MatrixMap(errors_.data(), d, d), scratch_.data());
}

bool LimitedRow::condition(Index k, bool all) {
  const Index p = n_present();
  const Index o = n_read_;
  const Index c = p - o;
  const Matrix& V = covariances_[static_cast<std::size_t>(k)];
  T_.resize(p, p);
  for (Index i = 0; i < p; ++i) {
    for (Index j = 0; j < p; ++j) T_(i, j) = V(present(i), present(j)) + errors_(present(i), present(j));
  }
  if (!cholesky(T_)) return false;

  // y = L_o^-1 (x - m), and the mean and covariance L_c L_c' of the limited readings, given those that are known.
  residual_.resize(o);
  for (Index i = 0; i < o; ++i) {
    const double rest = x_(present(i)) - population_.means(k, present(i));
    residual_(i) = (rest - T_.row(i).head(i).dot(residual_.head(i).transpose())) / T_(i, i);
  }
  lower_.resize(c);
  upper_.resize(c);
  width_.resize(c);
  Vector mean(c);
  for (Index i = 0; i < c; ++i) {
    const Index j = present(o + i);
    mean(i) = population_.means(k, j) + T_.row(o + i).head(o).dot(residual_.transpose());
    const double lower = data_.limits.lower_at(entry_ + j);
    const double upper = data_.limits.upper_at(entry_ + j);
    lower_(i) = lower - mean(i);
    upper_(i) = upper - mean(i);
    width_(i) = upper - lower;
  }
  spread_.resize(c, c);
  for (Index i = 0; i < c; ++i) {
    for (Index j = 0; j <= i; ++j) {
      spread_(i, j) = spread_(j, i) = T_.row(o + i).segment(o, j + 1).dot(T_.row(o + j).segment(o, j + 1));
    }
  }
  sites_.fit(spread_, lower_, upper_, width_);
  log_density =
      log_weights_(k) + sites_.log_mass -
      0.5 * (log_determinant(T_.topLeftCorner(o, o)) + log_two_pi * static_cast<double>(o) + residual_.squaredNorm());
  reading = mean + sites_.reading;
  variance = sites_.variance;
  if (!all) return true;

  // With G' = L_c (the rows c of L^-1): w = L_o^-T y + G u and T_o^-1 + G K G', u and K of the sites.
  Matrix& inverse = rows_;
  inverse = T_;
  invert_lower(inverse);
  pull.setZero(p);
  precision.setZero(p, p);
  for (Index i = 0; i < o; ++i) {
    pull.head(i + 1) += residual_(i) * inverse.row(i).head(i + 1).transpose();
    for (Index a = 0; a <= i; ++a) precision.row(a).head(i + 1) += inverse(i, a) * inverse.row(i).head(i + 1);
  }
  part_.setZero(c, p);
  for (Index i = 0; i < c; ++i) {
    for (Index j = 0; j <= i; ++j) part_.row(i) += T_(o + i, o + j) * inverse.row(o + j);
    pull += sites_.pull(i) * part_.row(i).transpose();
  }
  linalg::multiply(sites_.precision, part_, spread_);
  linalg::add_product(part_.transpose(), spread_, precision);
  return true;
}

void LimitedRow::place(Index k, LatentBlock& block) {
  condition(k, false);
  for (Index i = n_read_; i < n_present(); ++i) {
    const Index j = present(i);
    block.measured(0, j) = reading(i - n_read_);
    block.there(0, j) = 1.0;
    block.errors(0, j) = errors_(j, j) + variance(i - n_read_);
  }
}

void LimitedRow::place(Index k, std::vector<Index>& present, Vector& x, Matrix& S, Eigen::MatrixXd& S_root) {
  condition(k, false);
  present = present_;
  const Index p = n_present();
  const Index c = p - n_read_;
  S.resize(p, p);
  for (Index i = 0; i < p; ++i) {
    for (Index j = 0; j < p; ++j) S(i, j) = errors_(this->present(i), this->present(j));
  }
  // The errors of the sites have columns of their own: beside those that are huge, a common root would lose the others.
  const Eigen::MatrixXd root = linalg::pivoted_cholesky(S);
  S_root.setZero(p, root.cols() + c);
  S_root.leftCols(root.cols()) = root;
  for (Index i = 0; i < c; ++i) {
    x(this->present(n_read_ + i)) = reading(i);
    S(n_read_ + i, n_read_ + i) += variance(i);
    S_root(n_read_ + i, root.cols() + i) = std::sqrt(variance(i));
  }
}

namespace {

class Engine {
 public:
  Engine(const Population& population, const Measurements::Prepared& data, const Request& request)
      : data_(data),
        request_(request),
        k_(population.n_components()),
        d_(population.n_features()),
        row_(population, data),
        pulls_(static_cast<std::size_t>(k_)),
        precisions_(static_cast<std::size_t>(k_)) {}

  void run(Index begin, Index end, Expectation& out, Checkpoint& checkpoint) {
    if (request_.statistics) out.sums.reset(k_, d_, 0, true);
    joint_.resize(1, k_);
    for (Index at = begin; at < end; ++at) {
      checkpoint();
      row_.read(at);
      for (Index k = 0; k < k_; ++k) {
        if (!row_.condition(k, request_.statistics)) {
          out.failure.merge({data_.rows[static_cast<std::size_t>(at)], k});
          return;
        }
        joint_(0, k) = row_.log_density;
        pulls_[static_cast<std::size_t>(k)].swap(row_.pull);
        precisions_[static_cast<std::size_t>(k)].swap(row_.precision);
      }
      if (!weigh(data_, request_, {at, 1}, joint_, out)) return;
      for (Index k = 0; request_.statistics && k < k_; ++k) add(k, joint_(0, k), out.sums);
    }
  }

 private:
  void add(Index k, double r, Statistics& sums) const {
    sums.mass(k) += r;
    if (r == 0.0) return;
    const Vector& pull = pulls_[static_cast<std::size_t>(k)];
    const Matrix& precision = precisions_[static_cast<std::size_t>(k)];
    for (Index i = 0; i < pull.size(); ++i) {
      const Index a = row_.present(i);
      sums.pull(k, a) += r * pull(i);
      sums.precision(k, a) += r * precision(i, i);
      for (Index j = 0; j < pull.size(); ++j) {
        sums.curvature(k * d_ + a, row_.present(j)) += r * (pull(i) * pull(j) - precision(i, j));
      }
    }
  }

  const Measurements::Prepared& data_;
  const Request& request_;
  Index k_;
  Index d_;
  // Memory of the thread that owns this copy.
  LimitedRow row_;
  std::vector<Vector> pulls_;
  std::vector<Matrix> precisions_;
  Matrix joint_;
};

}  // namespace

void expect_limited(const Population& population, const Measurements::Prepared& data, const Request& request,
                    std::vector<Expectation>& parts, const Execution& execution) {
  const Engine engine(population, data, request);
  const Chunks chunks(data.n_limited(), 32);
  parts.resize(static_cast<std::size_t>(chunks.count()));
  std::vector<std::unique_ptr<Engine>> own(static_cast<std::size_t>(thread_count(chunks.count(), execution)));
  run_tasks(chunks.count(), execution, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    auto& mine = own[static_cast<std::size_t>(slot)];
    if (!mine) mine = std::make_unique<Engine>(engine);
    mine->run(data.size() + chunks.begin(chunk), data.size() + chunks.end(chunk),
              parts[static_cast<std::size_t>(chunk)], checkpoint);
  });
}

}  // namespace halosvm::population
