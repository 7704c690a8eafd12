// Fit of a population: start and measurements enter; E and M steps, extrapolated, lead to the most likely population.

#include "halosvm/population/empirical_bayes.hpp"

#include "halosvm/core/check.hpp"
#include "linalg/multiply.hpp"
#include "population/coordinates.hpp"
#include "population/fit.hpp"
#include "population/offsets.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <string>

namespace halosvm {
namespace {

using population::Expectation;

/// Quasi-Newton directions from the last points and their slopes (L-BFGS).
class QuasiNewton {
 public:
  /// Number of directions whose curvature is known.
  std::size_t size() const { return moves_.size(); }

  /// Leaves what it knows of curvatures, which did not lead on.
  void forget() {
    moves_.clear();
    changes_.clear();
    first_ = 1.0;
  }

  /// Takes a point, its slope, and about the curvature of each coordinate; returns the way to where the slope is
  /// predicted to vanish.
  Vector way(const Vector& point, const Vector& slope, const Vector& curvature) {
    if (point_.size() == point.size()) {
      add(point - point_, slope_ - slope, curvature);
    } else {
      forget();
    }
    point_ = point;
    slope_ = slope;
    Vector out = slope;
    std::vector<double> parts(moves_.size());
    for (std::size_t i = moves_.size(); i-- > 0;) {
      parts[i] = moves_[i].dot(out) / moves_[i].dot(changes_[i]);
      out -= parts[i] * changes_[i];
    }
    out = first_ * out.cwiseQuotient(curvature);
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      out += (parts[i] - changes_[i].dot(out) / moves_[i].dot(changes_[i])) * moves_[i];
    }
    return out;
  }

 private:
  static constexpr std::size_t memory = 30;
  /// Curvatures below this part of what they are taken for at first are rounding, or negative.
  static constexpr double flattest = 1e-8;

  void add(Vector move, Vector change, const Vector& curvature) {
    const double measured = move.dot(change);
    if (!(measured > flattest * move.cwiseProduct(curvature).dot(move))) return;
    first_ = measured / change.cwiseQuotient(curvature).dot(change);
    moves_.push_back(std::move(move));
    changes_.push_back(std::move(change));
    if (moves_.size() > memory) {
      moves_.pop_front();
      changes_.pop_front();
    }
  }

  std::deque<Vector> moves_;
  std::deque<Vector> changes_;
  double first_ = 1.0;  ///< scales the given curvature to that of the last move
  Vector point_;
  Vector slope_;
};

class Fit {
 public:
  Fit(const population::Pass& pass, double total_weight, const PopulationSettings& settings)
      : pass_(pass), total_weight_(total_weight), settings_(settings) {}

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
      reached_.resize(static_cast<std::size_t>(result_.iterations), value);
      const Vector point = population::coordinates(result_.population, settings_.scale);
      const population::Slope slope = this->slope();
      const Vector way = quasi_newton_.way(point, slope.rise, slope.curvature);
      predict(0.5 * slope.rise.dot(way), 0.5 * slope.rise.dot(slope.rise.cwiseQuotient(slope.curvature)));
      report(value);
      if (result_.predicted_gain < tolerance()) return ended(PopulationStatus::converged);
      if (exhausted()) return ended(PopulationStatus::max_iterations);
      const Pace before{result_.iterations, value};
      if (settings_.accelerate && quasi_newton_.size() >= known_curvatures && is_turn_of_model()) {
        if (search(point, way, slope.rise.dot(way), value)) {
          gain_of_model_ = before.gain(result_.iterations, value);
          continue;
        }
        gain_of_model_ = 0.0;
        quasi_newton_.forget();
        if (exhausted()) return ended(PopulationStatus::max_iterations);
      }
      if (!accept(population::maximise(result_.population, here_.sums, total_weight_, prior()), value)) {
        if (!std::isfinite(value) || there_.failure.any()) there_.failure.raise();
        return ended(PopulationStatus::rounding);
      }
      gain_of_plain_ = before.gain(result_.iterations, value);
    }
  }

 private:
  /// Plain steps lead to where the objective is curved like a hill in so many directions, and tell of them.
  static constexpr std::size_t known_curvatures = 5;
  static constexpr Index looks = 3;  // predictions in a row that have to agree that the end is near

  /// Steps of the kind that does worse are tried again after so many of the other: from 8 to 16 it hardly matters.
  static constexpr int tried_again = 12;

  /// Where a step began.
  struct Pace {
    int iterations;
    double value;
    double gain(int now, double reached) const { return (reached - value) / std::max(1, now - iterations); }
  };

  /// Whether the quasi-Newton step or the plain one is next: that which gained more in a pass, when it was last taken.
  /// Where errors are large beside the spread of the true values, plain steps can be the faster ones for long.
  bool is_turn_of_model() {
    const bool model = gain_of_model_ >= gain_of_plain_;
    turns_ = model == last_was_model_ ? turns_ + 1 : 1;
    const bool other = turns_ > tried_again;
    last_was_model_ = model != other;
    if (other) turns_ = 0;
    return last_was_model_;
  }

  population::Prior prior() const {
    return {settings_.prior, settings_.prior_scatter, settings_.prior_weight, settings_.offset_prior_weight,
            settings_.offset_prior};
  }
  double tolerance() const { return settings_.tolerance * total_weight_; }
  bool exhausted() const { return result_.iterations >= settings_.max_iterations; }
  population::Slope slope() const {
    return population::slope(result_.population, here_.sums, prior(), settings_.scale);
  }

  PopulationFit ended(PopulationStatus status) {
    result_.status = status;
    result_.offsets = std::move(here_.offsets);
    return std::move(result_);
  }

  /// Log likelihood plus log prior, the sums in there_ or, at the first call, here_.
  double objective(const Population& population) {
    Expectation& out = result_.history.empty() ? here_ : there_;
    pass_(population, here_.offsets, out);
    ++result_.iterations;
    if (out.failure.any()) return -infinity;
    return out.sums.log_likelihood + population::log_prior(population, prior()) +
           population::log_offset_prior(population, prior());
  }

  /// Goes to a point if the objective grows by more than \p least.
  bool accept(const Population& population, double& value, double least = 0.0) {
    const double other = objective(population);
    if (!(other > value && other >= value + least && other < infinity)) return false;
    value = other;
    result_.history.push_back(value);
    result_.population = population;
    std::swap(here_, there_);
    return true;
  }

  /// Goes along a way, farther while the objective rises nearly as steeply as at first, less far until it grows by a
  /// fair part of what the slope promises (the conditions of Wolfe and Armijo). False, where it was, if it does not.
  bool search(const Vector& point, const Vector& way, double steepness, double& value) {
    constexpr int farthest = 10;
    constexpr int shortest = 3;
    constexpr double fair = 1e-4;
    constexpr double still_steep = 0.9;
    const Population like = result_.population;
    double length = 1.0;
    for (int trial = 0; trial < shortest && !exhausted(); ++trial, length *= 0.2) {
      if (!accept(population::population_at(point + length * way, like, settings_.scale), value,
                  fair * length * steepness)) {
        continue;
      }
      for (int more = 0; trial == 0 && more < farthest && !exhausted(); ++more) {
        const Vector rise = slope().rise;
        if (rise.size() != way.size() || !(rise.dot(way) > still_steep * steepness)) break;
        length *= 2.0;
        if (!accept(population::population_at(point + length * way, like, settings_.scale), value)) break;
      }
      return true;
    }
    return false;
  }

  /// What the objective is expected to gain in all.
  /// \param predicted by the quasi-Newton model.
  /// \param plain by the curvatures of the coordinates alone, about what a plain step gains.
  void predict(double predicted, double plain) {
    std::rotate(predictions_.begin(), predictions_.begin() + 1, predictions_.end());
    predictions_.back() = predicted;
    result_.predicted_gain = std::max(recent_gain(), *std::max_element(predictions_.begin(), predictions_.end()));
    // However slow the steps are, this one is too small to matter.
    constexpr double slowest = 1e9;
    if (plain * slowest < tolerance()) result_.predicted_gain = predicted;
  }

  /// What the later half of the passes gained: gains that shrink, however slowly, but not slower than with the square
  /// of the number of passes, add up to no more. It sees flat directions that the model of the slope has not met yet.
  double recent_gain() const {
    const std::size_t half = reached_.size() / 2;
    return half == 0 ? infinity : reached_.back() - reached_[half - 1];
  }

  void report(double value) const {
    if (settings_.report) settings_.report(result_.iterations, value, result_.predicted_gain);
  }

  const population::Pass& pass_;
  double total_weight_;
  double gain_of_model_ = infinity;  ///< in a pass, of the last quasi-Newton step
  double gain_of_plain_ = 0.0;       ///< of the last plain one
  bool last_was_model_ = true;
  int turns_ = 0;  ///< steps of one kind in a row
  const PopulationSettings& settings_;
  QuasiNewton quasi_newton_;
  std::array<double, looks> predictions_{infinity, infinity, infinity};
  std::vector<double> reached_;  ///< the objective after each pass
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

void Population::take_shape(Index k, const Population& from, Index other) {
  const Index d = n_features();
  if (matrices.size() > 0) matrices.middleRows(k * d, d) = from.matrices.middleRows(other * d, d);
  if (factors.size() > 0) factors.middleRows(k * d, d) = from.factors.middleRows(other * d, d);
  if (variances.size() > 0) variances.row(k) = from.variances.row(other);
}

Population Population::components(Index first, Index count) const {
  const Index d = n_features();
  Population out;
  out.kind = kind;
  out.weights = weights.segment(first, count);
  out.means = means.middleRows(first, count);
  if (matrices.size() > 0) out.matrices = matrices.middleRows(first * d, count * d);
  if (factors.size() > 0) out.factors = factors.middleRows(first * d, count * d);
  if (variances.size() > 0) out.variances = variances.middleRows(first, count);
  out.tied = tied;
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
  check::require(classes.empty() || static_cast<Index>(classes.size()) == k, argument, "has not one class a component");
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const Index step = classes[i] - (i == 0 ? 0 : classes[i - 1]);
    check::require(step == 0 || (i > 0 && step == 1), argument, "has classes that are not 0, 1, ... in order");
  }
  for (const std::vector<bool>* part : {&held.weights, &held.means, &held.covariances}) {
    check::require(part->empty() || (static_cast<Index>(part->size()) == k && n_classes() == 1), argument,
                   "holds parts of another number of components, or of several classes");
  }
  check::require(!tied || held.covariances.empty(), argument, "holds covariances that are tied");
  check::require(offsets.size() == 0 || (offsets.rows() == d && offsets.cols() == d && offsets.allFinite() &&
                                         offsets.diagonal().minCoeff() >= 0.0),
                 argument, "has a covariance of offsets that is no covariance of its features");
  for (Index i = 1; tied && i < k; ++i) {
    Population first = *this;
    first.take_shape(i, 0);
    check::require(first.matrices == matrices && first.factors == factors && first.variances == variances, argument,
                   "has tied covariances that differ");
  }
}

const char* sentence(PopulationStatus status) {
  switch (status) {
    case PopulationStatus::converged:
      return "the log likelihood is expected to gain less than tol for each row";
    case PopulationStatus::max_iterations:
      return "max_iter passes over the data are used up";
    case PopulationStatus::rounding:
      return "the log likelihood no longer grows in double precision";
  }
  return "";
}

PopulationFit population::fit(const Pass& pass, double total_weight, const Population& start,
                              const PopulationSettings& settings) {
  start.check("init");
  const Index d = start.n_features();
  check::require(settings.max_iterations > 0, "max_iterations", "must be positive");
  check::require(settings.tolerance >= 0.0, "tolerance", "must be >= 0");
  check::same_size("prior", settings.prior.size(), "X", d, "features");
  check::same_size("scale", settings.scale.size(), "X", d, "features");
  check::require((settings.prior.array() >= 0.0).all() && settings.prior.allFinite(), "prior",
                 "must be >= 0 and finite");
  const Matrix& scatter = settings.prior_scatter;
  check::require(scatter.size() == 0 || (scatter.rows() == d && scatter.cols() == d && scatter.allFinite()),
                 "prior_scatter", "must be finite, with a row and a column for each feature");
  check::require(settings.prior_weight >= 0.0 && std::isfinite(settings.prior_weight), "prior_weight",
                 "must be >= 0 and finite");
  check::require(settings.offset_prior_weight >= 0.0 && std::isfinite(settings.offset_prior_weight) &&
                     (settings.offset_prior_weight == 0.0 ||
                      (settings.offset_prior.size() == d && settings.offset_prior.allFinite() &&
                       settings.offset_prior.minCoeff() > 0.0)),
                 "offset_prior", "must be positive, with a variance for each feature, and its weight >= 0");
  check::require((settings.scale.array() > 0.0).all() && settings.scale.allFinite(), "scale", "must be positive");
  Population normalised = start;
  normalised.weights /= start.weights.sum();
  return Fit(pass, total_weight, settings).run(normalised);
}

PopulationFit fit_population(const std::vector<const Measurements*>& X, const Population& start,
                             const PopulationSettings& settings, const Execution& execution) {
  check::same_size("X", static_cast<Index>(X.size()), "init", start.n_classes(), "classes");
  std::vector<const Measurements::Prepared*> classes;
  double total_weight = 0.0;
  for (const Measurements* each : X) {
    check::same_size("init", start.n_features(), "X", each->prepared().n_features(), "features");
    classes.push_back(&each->prepared());
    total_weight += each->prepared().total_weight;
  }
  const population::Pass pass = [&](const Population& population, const BatchOffsets&, Expectation& out) {
    population::expect(population, classes, out, execution);
  };
  return population::fit(pass, total_weight, start, settings);
}

PopulationFit fit_population(const Measurements& X, const Population& start, const PopulationSettings& settings,
                             const Execution& execution) {
  return fit_population(std::vector<const Measurements*>{&X}, start, settings, execution);
}

void log_density(const Population& population, const Gaussians& X, VectorRef out, const Execution& execution,
                 const Limits& limits) {
  population.check("population");
  check::same_size("out", out.size(), "X", X.n_samples(), "rows");
  const Measurements measurements(X, nullptr, execution, limits);
  Expectation result;
  population::Request request;
  request.log_density = out.data();
  population::expect(population, measurements.prepared(), request, result, execution);
  if (result.failure.any()) result.failure.raise();
}

}  // namespace halosvm
