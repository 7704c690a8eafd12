// Batches: rows with the number of their batch enter, sorted and grouped; the fit with offsets, the offsets, and rows
// without them leave.

#include "population/batches.hpp"

#include "halosvm/core/check.hpp"
#include "linalg/multiply.hpp"
#include "population/fit.hpp"
#include "population/lane_rows.hpp"
#include "population/offsets.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace halosvm {

BatchedMeasurements::Prepared::Prepared(const Gaussians& X, const double* given, const std::vector<Index>& batches,
                                        const std::vector<Index>& classes, bool summed, const Execution& execution)
    : measurements(X, given, execution), labelled(!classes.empty()) {
  const Measurements::Prepared& data = measurements.prepared();
  const auto n = static_cast<std::size_t>(X.n_samples());
  check::same_size("batches", static_cast<Index>(batches.size()), "X", X.n_samples(), "rows");
  check::require(classes.empty() || classes.size() == n, "classes", "has another number of rows than X");
  for (std::size_t i = 0; i < n; ++i) {
    check::require(batches[i] >= 0, "batches", "row " + std::to_string(i) + " is no batch");
    check::require(classes.empty() || classes[i] >= 0, "classes", "row " + std::to_string(i) + " is no class");
  }
  std::vector<Index> cell(static_cast<std::size_t>(data.size()), 0);
  for (Index c = 0; data.shared && c < data.n_cells(); ++c) {
    for (Index at = data.cells[static_cast<std::size_t>(c)]; at < data.cells[static_cast<std::size_t>(c) + 1]; ++at) {
      cell[static_cast<std::size_t>(at)] = c;
    }
  }
  const auto key = [&](Index position) {
    const auto at = static_cast<std::size_t>(position);
    const auto row = static_cast<std::size_t>(data.rows[at]);
    return std::tuple(batches[row], labelled ? classes[row] : Index{-1}, cell[at]);
  };
  std::vector<Index> order(static_cast<std::size_t>(data.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(),
            [&](Index a, Index b) { return std::tuple(key(a), a) < std::tuple(key(b), b); });
  std::vector<Index> firsts;  // where an item begins, if items are groups
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || key(order[i]) != key(order[i - 1])) firsts.push_back(static_cast<Index>(i));
  }
  const auto n_groups = static_cast<Index>(firsts.size());
  if (!summed || !data.shared || n_groups * data.n_features() > data.size()) {
    firsts.resize(order.size());
    std::iota(firsts.begin(), firsts.end(), Index{0});
  }
  firsts.push_back(data.size());
  group(order, firsts);
  // Blocks of items of one batch and one class.
  const Index n_batches = batches.empty() ? 0 : *std::max_element(batches.begin(), batches.end()) + 1;
  begins.assign(static_cast<std::size_t>(n_batches) + 1, 0);
  Index last = -1;
  for (Index item = 0; item < static_cast<Index>(rows.size()); ++item) {
    const auto row = static_cast<std::size_t>(rows[static_cast<std::size_t>(item)]);
    const Index label = labelled ? classes[row] : -1;
    Block* open = blocks.empty() ? nullptr : &blocks.back();
    if (open == nullptr || batches[row] != last || open->label != label || open->count == kernels::lanes) {
      blocks.push_back({item, 0, label});
      open = &blocks.back();
      ++begins[static_cast<std::size_t>(batches[row]) + 1];
    }
    ++open->count;
    last = batches[row];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
}

void BatchedMeasurements::Prepared::group(const std::vector<Index>& order, const std::vector<Index>& firsts) {
  const Measurements::Prepared& data = measurements.prepared();
  const Index d = data.n_features();
  const auto n_items = static_cast<Index>(firsts.size()) - 1;
  const bool several = n_items < data.size();
  if (several) {
    means.setZero(n_items, d);
    scatters.setZero(n_items * d, d);
  }
  std::vector<double> scratch(static_cast<std::size_t>(d));
  const auto read = [&](Index position) {
    Vector x = data.means(position, 1, scratch.data()).row(0).transpose();
    return Vector(x.array().isNaN().select(0.0, x));
  };
  for (Index item = 0; item < n_items; ++item) {
    const auto begin = static_cast<std::size_t>(firsts[static_cast<std::size_t>(item)]);
    const auto end = static_cast<std::size_t>(firsts[static_cast<std::size_t>(item) + 1]);
    double weight = 0.0;
    for (std::size_t i = begin; i < end; ++i) weight += data.weights[static_cast<std::size_t>(order[i])];
    rows.push_back(data.rows[static_cast<std::size_t>(order[begin])]);
    weights.push_back(weight);
    if (!several) continue;
    Vector mean = Vector::Zero(d);
    for (std::size_t i = begin; i < end; ++i) {
      mean += data.weights[static_cast<std::size_t>(order[i])] / weight * read(order[i]);
    }
    means.row(item) = mean.transpose();
    auto scatter = scatters.middleRows(item * d, d);
    for (std::size_t i = begin; i < end; ++i) {
      const Vector apart = read(order[i]) - mean;
      scatter += data.weights[static_cast<std::size_t>(order[i])] * apart * apart.transpose();
    }
  }
}

BatchedMeasurements::BatchedMeasurements(const Gaussians& X, const double* weights, const std::vector<Index>& batches,
                                         const std::vector<Index>& classes, bool summed, const Execution& execution)
    : prepared_(std::make_unique<Prepared>(X, weights, batches, classes, summed, execution)) {}
BatchedMeasurements::~BatchedMeasurements() = default;
BatchedMeasurements::BatchedMeasurements(BatchedMeasurements&&) noexcept = default;

Index BatchedMeasurements::n_batches() const { return prepared_->n_batches(); }

PopulationFit fit_population(const BatchedMeasurements& X, const Population& start, const PopulationSettings& settings,
                             const Execution& execution) {
  const BatchedMeasurements::Prepared& data = X.prepared();
  check::same_size("init", start.n_features(), "X", data.n_features(), "features");
  check::require(start.offsets.size() > 0, "init", "has no covariance of offsets");
  for (const auto& block : data.blocks) {
    check::require(block.label < start.n_classes(), "classes", "has a class that init has not");
    const auto range = population::components_of(start, block.label);
    check::require(!data.grouped() || range.second - range.first == 1, "summed",
                   "is for rows that each come from one component");
  }
  const population::Pass pass = [&](const Population& population, const BatchOffsets& from,
                                    population::Expectation& out) {
    population::expect_batches(population, data, nullptr, from, true, out, execution);
  };
  return population::fit(pass, data.measurements.prepared().total_weight, start, settings);
}

BatchOffsets batch_offsets(const Population& population, const BatchedMeasurements& X, const BatchOffsets* known,
                           const Execution& execution) {
  population.check("population");
  const Index d = population.n_features();
  check::same_size("X", X.prepared().n_features(), "the population", d, "features");
  check::require(population.offsets.size() > 0, "population", "has no covariance of offsets");
  check::require(!X.prepared().grouped() || population.n_components() == 1, "summed",
                 "is for rows that each come from one component");
  if (known != nullptr) {
    check::same_size("known", known->means.rows(), "X", X.n_batches(), "batches");
    check::same_size("known", known->covariances.rows(), "X", X.n_batches() * d, "batches times features");
  }
  population::Expectation out;
  population::expect_batches(population, X.prepared(), known, {}, false, out, execution);
  if (out.failure.any()) out.failure.raise();
  return std::move(out.offsets);
}

namespace {

/// Takes the offset out of single rows.
class Remover {
 public:
  Remover(const Population& population, const Gaussians& X, const BatchOffsets& offsets)
      : population_(population),
        offsets_(offsets),
        X_(X),
        noise_(X.covariances()),
        d_(X.n_features()),
        log_weights_(population::log_weights(population)),
        scratch_(std::max(noise_.scratch_size(1), d_)),
        S_(d_, d_) {
    for (Index k = 0; k < population.n_components(); ++k) covariances_.push_back(population.covariance(k));
  }

  void run(Index row, Index batch, Index label, double part, const LoneRows& out, population::Failure& failure) {
    x_ = X_.means().block({row, 1}, scratch_.data()).row(0).transpose();
    noise_.matrix(row, MatrixMap(S_.data(), d_, d_), scratch_.data());
    const Vector offset = offsets_.means.row(batch).transpose();
    const Matrix D = population::semidefinite_root(offsets_.covariances.middleRows(batch * d_, d_));
    const auto range = population::components_of(population_, label);
    const Index width = range.second - range.first;
    std::vector<Vector> pulls(static_cast<std::size_t>(width));
    std::vector<Matrix> precisions(static_cast<std::size_t>(width));
    Vector joint(width);
    for (Index k = range.first; k < range.second; ++k) {
      const auto at = static_cast<std::size_t>(k - range.first);
      const double density = whiten(k, offset, pulls[at], precisions[at]);
      if (!std::isfinite(density)) {
        failure.merge({row, k});
        return;
      }
      const double unknown = linalg::product(precisions[at], D).cwiseProduct(D).sum();
      joint(static_cast<Index>(at)) = log_weights_(k) + density - 0.5 * unknown;
    }
    joint = (joint.array() - joint.maxCoeff()).exp();
    joint *= part / joint.sum();
    Vector pull = Vector::Zero(d_);
    Matrix precision = Matrix::Zero(d_, d_);
    for (Index at = 0; at < width; ++at) {
      pull += joint(at) * pulls[static_cast<std::size_t>(at)];
      precision += joint(at) * precisions[static_cast<std::size_t>(at)];
    }
    // P' of the other rows is (P^-1 - A)^-1 = D (I - D'A D)^-1 D', their mean that of all rows less P' pull.
    Matrix rest = -linalg::product(D.transpose(), linalg::product(precision, D));
    rest.diagonal().array() += 1.0;
    if (!population::cholesky(rest)) rest.setIdentity();  // what the others tell is not resolved in double precision
    population::invert_lower(rest);
    const Matrix root = linalg::product(D, rest.transpose());
    const auto seen = linalg::product<Vector>(root.transpose(), pull);
    VectorMap(out.means + row * d_, d_) = x_ - offset + linalg::product<Vector>(root, seen);
    if (out.covariances == nullptr) return;
    MatrixMap covariance(out.covariances + row * d_ * d_, d_, d_);
    covariance = S_;
    linalg::add_product(root, root.transpose(), covariance);
    covariance = (0.5 * (covariance + covariance.transpose())).eval();
  }

 private:
  /// R'T^-1 (x - R (m + o)) and R'T^-1 R; returns the log density, infinite if T is singular.
  double whiten(Index k, const Vector& offset, Vector& pull, Matrix& precision) {
    std::vector<Index> present;
    for (Index j = 0; j < d_; ++j) {
      if (!std::isnan(x_(j))) present.push_back(j);
    }
    const auto p = static_cast<Index>(present.size());
    pull.setZero(d_);
    precision.setZero(d_, d_);
    Matrix T(p, p);
    Vector rest(p);
    const Matrix& V = covariances_[static_cast<std::size_t>(k)];
    for (Index a = 0; a < p; ++a) {
      const Index i = present[static_cast<std::size_t>(a)];
      rest(a) = x_(i) - population_.means(k, i) - offset(i);
      for (Index b = 0; b < p; ++b) {
        const Index j = present[static_cast<std::size_t>(b)];
        T(a, b) = V(i, j) + S_(i, j);
      }
    }
    if (!population::cholesky(T)) return infinity;
    const double volume = population::log_determinant(T);
    population::invert_lower(T);
    const auto white = linalg::product<Vector>(T, rest);
    const auto w = linalg::product<Vector>(T.transpose(), white);
    const Matrix inverse = linalg::product(T.transpose(), T);
    for (Index a = 0; a < p; ++a) {
      const Index i = present[static_cast<std::size_t>(a)];
      pull(i) = w(a);
      for (Index b = 0; b < p; ++b) precision(i, present[static_cast<std::size_t>(b)]) = inverse(a, b);
    }
    return -0.5 * (volume + white.squaredNorm());
  }

  const Population& population_;
  const BatchOffsets& offsets_;
  const Gaussians& X_;
  population::Noise noise_;
  Index d_;
  Vector log_weights_;
  std::vector<Matrix> covariances_;
  Vector scratch_, x_;
  Matrix S_;
};

}  // namespace

void remove_offsets(const Population& population, const Gaussians& X, const std::vector<Index>& batches,
                    const std::vector<Index>& classes, const BatchOffsets& offsets, const ConstVectorRef& parts,
                    const LoneRows& out, const Execution& execution) {
  population.check("population");
  const auto n = static_cast<std::size_t>(X.n_samples());
  check::same_size("X", X.n_features(), "the population", population.n_features(), "features");
  check::require(batches.size() == n, "batches", "has another number of rows than X");
  check::require(classes.empty() || classes.size() == n, "classes", "has another number of rows than X");
  check::require(parts.size() == X.n_samples(), "parts", "has another number of rows than X");
  for (const Index batch : batches) {
    check::require(batch >= 0 && batch < offsets.means.rows(), "batches", "has a batch without an offset");
  }
  const Chunks chunks(X.n_samples(), 64);
  std::vector<population::Failure> failures(static_cast<std::size_t>(chunks.count()));
  std::vector<std::unique_ptr<Remover>> own(static_cast<std::size_t>(thread_count(chunks.count(), execution)));
  run_tasks(chunks.count(), execution, [&](Index chunk, int slot, Checkpoint& checkpoint) {
    auto& mine = own[static_cast<std::size_t>(slot)];
    if (!mine) mine = std::make_unique<Remover>(population, X, offsets);
    for (Index row = chunks.begin(chunk); row < chunks.end(chunk); ++row) {
      checkpoint();
      const auto at = static_cast<std::size_t>(row);
      mine->run(row, batches[at], classes.empty() ? -1 : classes[at], parts(row), out,
                failures[static_cast<std::size_t>(chunk)]);
    }
  });
  population::Failure failure;
  for (const population::Failure& each : failures) failure.merge(each);
  if (failure.any()) failure.raise();
}

}  // namespace halosvm
