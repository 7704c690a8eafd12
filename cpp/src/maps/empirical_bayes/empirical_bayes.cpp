// Fit of a population: start and measurements enter; E and M steps, extrapolated, lead to the most likely population.

#include "halosvm/maps/empirical_bayes.hpp"

#include "halosvm/core/check.hpp"
#include "linalg/multiply.hpp"
#include "maps/empirical_bayes/maximisation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <string>

namespace halosvm {
namespace {

using maps::Expectation;
using maps::Step;

/// Anderson's method: the next point from the last points and their plain steps.
class Extrapolation {
 public:
  explicit Extrapolation(std::size_t memory) : memory_(memory) {}

  void clear() {
    moves_.clear();
    changes_.clear();
    point_.resize(0);
  }

  std::size_t size() const { return moves_.size(); }

  /// Takes a point and its plain step; returns the way from the point to where the step is predicted to vanish.
  /// \param metric what a unit of each coordinate counts.
  Vector next(const Vector& point, const Vector& step, const Vector& metric) {
    if (point_.size() == point.size()) {
      moves_.emplace_back(point - point_);
      changes_.emplace_back(step - step_);
      if (moves_.size() > memory_) {
        moves_.pop_front();
        changes_.pop_front();
      }
    } else {
      clear();
    }
    point_ = point;
    step_ = step;
    const auto m = static_cast<Index>(moves_.size());
    if (m == 0) return step;
    // The combination of changes that explains the step best; the ridge holds where they are nearly dependent.
    constexpr double ridge = 1e-10;
    Matrix gram(m, m);
    Matrix right(m, 1);
    for (Index i = 0; i < m; ++i) {
      const Vector change = changes_[static_cast<std::size_t>(i)].cwiseProduct(metric);
      for (Index j = 0; j <= i; ++j) gram(i, j) = gram(j, i) = change.dot(changes_[static_cast<std::size_t>(j)]);
      right(i, 0) = change.dot(step);
    }
    gram.diagonal() *= 1.0 + ridge;
    if (!maps::cholesky(gram)) return step;
    maps::solve(gram, right);
    Vector way = step;
    for (Index i = 0; i < m; ++i) {
      way -= right(i, 0) * (moves_[static_cast<std::size_t>(i)] + changes_[static_cast<std::size_t>(i)]);
    }
    return way;
  }

 private:
  std::size_t memory_;
  std::deque<Vector> moves_;
  std::deque<Vector> changes_;
  Vector point_;
  Vector step_;
};

class Fit {
 public:
  Fit(const Measurements& X, const PopulationSettings& settings, const Execution& execution)
      : data_(X.prepared()), settings_(settings), execution_(execution), extrapolation_(memory) {}

  PopulationFit run(const Population& start) {
    result_.population = start;
    double value = objective(start);
    if (here_.failure.any()) here_.failure.raise();
    if (!std::isfinite(value)) {
      check::fail("init",
                  "has a covariance that is singular, which the prior of reg_covar excludes; use another start");
    }
    result_.history.push_back(value);
    for (;;) {
      const Step step = maps::maximise(result_.population, here_.sums, data_.total_weight, settings_.prior);
      const Population extrapolated = look_ahead(step);
      report(value);
      if (result_.predicted_gain < settings_.tolerance) return ended(PopulationStatus::converged);
      if (exhausted()) return ended(PopulationStatus::max_iterations);
      if (settings_.accelerate && extrapolation_.size() > 0) {
        if (accept(extrapolated, value)) continue;
        if (exhausted()) return ended(PopulationStatus::max_iterations);
      }
      if (!accept(step.population, value)) {
        if (!std::isfinite(value) || there_.failure.any()) there_.failure.raise();
        return ended(PopulationStatus::rounding);
      }
    }
  }

 private:
  static constexpr std::size_t memory = 10;
  static constexpr Index looks = 3;  // predictions in a row that have to agree that the end is near

  bool exhausted() const { return result_.iterations >= settings_.max_iterations; }

  PopulationFit ended(PopulationStatus status) {
    result_.status = status;
    return std::move(result_);
  }

  void start_anew() {
    extrapolation_.clear();
    predictions_.fill(infinity);
  }

  /// Log likelihood plus log prior, the sums in there_ or, at the first call, here_.
  double objective(const Population& population) {
    Expectation& out = result_.history.empty() ? here_ : there_;
    maps::Request request;
    request.statistics = true;
    maps::expect(population, data_, request, out, execution_);
    ++result_.iterations;
    if (out.failure.any()) return -infinity;
    return out.sums.log_likelihood + maps::log_prior(population, settings_.prior);
  }

  /// Goes to a point unless the objective is less there.
  bool accept(const Population& population, double& value) {
    const double other = objective(population);
    if (!(other > value && other < infinity)) return false;
    value = other;
    result_.history.push_back(value);
    result_.population = population;
    std::swap(here_, there_);
    return true;
  }

  /// The extrapolated point, and how much the objective is predicted to gain in all: what the plain step gains, times
  /// how much farther the way to the end is than the step.
  Population look_ahead(const Step& step) {
    const Vector point = maps::coordinates(result_.population, settings_.scale);
    Vector plain = maps::coordinates(step.population, settings_.scale);
    if (plain.size() != point.size()) {  // a component died
      start_anew();
      result_.predicted_gain = infinity;
      return step.population;
    }
    plain -= point;
    const Vector metric = maps::information(result_.population, settings_.scale, data_.total_weight);
    const Vector way = extrapolation_.next(point, plain, metric);
    const Vector weighted = plain.cwiseProduct(metric);
    const double length = weighted.dot(plain);
    const double farther = length > 0.0 ? std::max(1.0, weighted.dot(way) / length) : 1.0;
    std::rotate(predictions_.begin(), predictions_.begin() + 1, predictions_.end());
    predictions_.back() = step.gain * farther;
    result_.predicted_gain = std::max(tail_of_history(), *std::max_element(predictions_.begin(), predictions_.end()));
    // However slow the steps are, this one is too small to matter.
    constexpr double slowest = 1e9;
    if (step.gain * slowest < settings_.tolerance) result_.predicted_gain = step.gain * farther;
    return maps::population_at(point + way, result_.population, settings_.scale);
  }

  /// What is still to come if gains go on to shrink as they did: Aitken's extrapolation of the last two runs of points.
  /// It sees slow directions that the extrapolation has not met yet.
  double tail_of_history() const {
    constexpr std::ptrdiff_t longest = 5;
    const std::vector<double>& history = result_.history;
    const std::ptrdiff_t run = std::min(longest, (static_cast<std::ptrdiff_t>(history.size()) - 1) / 2);
    if (run == 0) return infinity;
    const auto last = history.rbegin();
    const double later = last[0] - last[run];
    const double earlier = last[run] - last[2 * run];
    return later < earlier ? later * later / (earlier - later) : infinity;
  }

  void report(double value) const {
    if (settings_.report) settings_.report(result_.iterations, value, result_.predicted_gain);
  }

  const Measurements::Prepared& data_;
  const PopulationSettings& settings_;
  const Execution& execution_;
  Extrapolation extrapolation_;
  std::array<double, looks> predictions_{infinity, infinity, infinity};
  Expectation here_;
  Expectation there_;
  PopulationFit result_;
};

}  // namespace

Matrix Population::covariance(Index k) const {
  check::require(k >= 0 && k < n_components(), "k", "is " + std::to_string(k) + "; there is no such component");
  const Index d = n_features();
  if (kind == PopulationKind::full) return matrices.middleRows(k * d, d);
  Matrix out = Matrix::Zero(d, d);
  if (kind == PopulationKind::factors) {
    const auto L = factors.middleRows(k * d, d);
    linalg::multiply(L, L.transpose(), out);
  }
  out.diagonal() += variances.row(k).transpose();
  return out;
}

void Population::check(const std::string& argument) const {
  const Index k = n_components();
  const Index d = n_features();
  check::require(k > 0 && d > 0, argument, "has no components or no features");
  check::same_size(argument, weights.size(), "means", k, "components");
  const bool is_full = kind == PopulationKind::full;
  const bool has_factors = kind == PopulationKind::factors;
  check::require(
      is_full ? matrices.rows() == k * d && matrices.cols() == d : variances.rows() == k && variances.cols() == d,
      argument, "has covariances of another shape than its means");
  check::require(!has_factors || factors.rows() == k * d, argument, "has factors of another shape than its means");
  check::require(
      means.allFinite() && weights.allFinite() && matrices.allFinite() && factors.allFinite() && variances.allFinite(),
      argument, "holds a value that is not finite");
  check::require(weights.minCoeff() >= 0.0 && weights.sum() > 0.0, argument, "has weights that are negative or all 0");
  check::require(is_full || variances.minCoeff() >= 0.0, argument, "has a negative variance");
}

const char* sentence(PopulationStatus status) {
  switch (status) {
    case PopulationStatus::converged:
      return "the log likelihood is predicted to gain less than tol";
    case PopulationStatus::max_iterations:
      return "max_iter passes over the data are used up";
    case PopulationStatus::rounding:
      return "the log likelihood no longer grows in double precision";
  }
  return "";
}

PopulationFit fit_population(const Measurements& X, const Population& start, const PopulationSettings& settings,
                             const Execution& execution) {
  start.check("init");
  const Index d = X.prepared().n_features();
  check::require(settings.max_iterations > 0, "max_iterations", "must be positive");
  check::require(settings.tolerance >= 0.0, "tolerance", "must be >= 0");
  check::same_size("init", start.n_features(), "X", d, "features");
  check::same_size("prior", settings.prior.size(), "X", d, "features");
  check::same_size("scale", settings.scale.size(), "X", d, "features");
  check::require((settings.prior.array() >= 0.0).all() && settings.prior.allFinite(), "prior",
                 "must be >= 0 and finite");
  check::require((settings.scale.array() > 0.0).all() && settings.scale.allFinite(), "scale", "must be positive");
  Population normalised = start;
  normalised.weights /= start.weights.sum();
  return Fit(X, settings, execution).run(normalised);
}

void log_density(const Population& population, const Gaussians& X, VectorRef out, const Execution& execution) {
  population.check("population");
  check::same_size("out", out.size(), "X", X.n_samples(), "rows");
  const Measurements measurements(X, nullptr, execution);
  Expectation result;
  maps::Request request;
  request.log_density = out.data();
  maps::expect(population, measurements.prepared(), request, result, execution);
  if (result.failure.any()) result.failure.raise();
}

}  // namespace halosvm
