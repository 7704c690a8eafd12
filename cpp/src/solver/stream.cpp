// Gradient descent along a stream: examples come in one after another, the state of the walk goes out.

#include "halosvm/solver/stream.hpp"

#include "halosvm/core/check.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm {
namespace {

class StreamWalk {
 public:
  StreamWalk(const StreamExamples& examples, const Loss& loss, double regularisation, bool fit_intercept,
             StreamState& state)
      : examples_(examples),
        loss_(loss),
        lam_(regularisation),
        fit_intercept_(fit_intercept),
        state_(state),
        n_problems_(state.coef.rows()),
        means_(static_cast<std::size_t>(examples.data.means().scratch_size(1, n_problems_))),
        row_(static_cast<std::size_t>(examples.data.n_features())),
        covariances_(
            static_cast<std::size_t>(examples.data.covariances().scratch_size({1, std::max<Index>(n_problems_, 1)}))),
        diagonal_(examples.data.n_features()),
        gradient_(n_problems_, examples.data.n_features()),
        f_(n_problems_, 1),
        s_(n_problems_, 1),
        slope_(n_problems_, 1),
        slope_s2_(n_problems_, 1),
        m_(n_problems_),
        value_(n_problems_),
        theta_(n_problems_),
        phi_(n_problems_) {}

  void step(Index row) {
    const double weight = examples_.weights != nullptr ? examples_.weights[row] : 1.0;
    if (weight == 0.0) return;
    const Rows rows{row, 1};
    const double size = weight * look(rows, weight);
    slopes(rows, weight);
    descend(rows, size);
  }

 private:
  /// Counts an example among those that tell where the features are; returns its own |x|^2 + 1 + tr S.
  double look(const Rows& rows, double weight) {
    const auto x = examples_.data.means().block(rows, row_.data()).row(0).transpose();
    state_.weight += weight;
    const double share = weight / state_.weight;
    double about_mean = 0.0;
    double own = 0.0;
    if (fit_intercept_) {
      // The diagonal's memory holds what x was away from the mean before.
      diagonal_ = x - state_.centre;
      state_.centre += share * diagonal_;
      about_mean = diagonal_.dot(x - state_.centre);
      own = (x - state_.centre).squaredNorm();
    } else {
      own = x.squaredNorm();
      about_mean = own;
    }
    double trace = 0.0;
    if (loss_.uses_spread() && !examples_.data.covariances().certain()) {
      diagonal_.setZero();
      examples_.data.covariances().add_weighted_diagonals(rows, one_, diagonal_, covariances_.data());
      trace = diagonal_.sum();
    }
    state_.square += share * (about_mean + trace - state_.square);
    return own + 1.0 + trace;
  }

  /// Slopes of the example's loss in f and in s^2 / 2, times its weight.
  void slopes(const Rows& rows, double weight) {
    examples_.data.means().multiply(rows, state_.coef, f_, means_.data());
    f_.col(0) += state_.intercept;
    s_.setZero();
    if (loss_.uses_spread()) {
      examples_.data.covariances().bilinear(rows, state_.coef, state_.coef, s_, covariances_.data());
      const double variance = examples_.variances != nullptr ? examples_.variances[rows[0]] : 0.0;
      s_ = (s_.array().max(0.0) + variance).sqrt();
    }
    slope_.setZero();
    slope_s2_.setZero();
    for (const StreamTerm& term : examples_.terms) {
      const double offset = term.offsets != nullptr ? term.offsets[rows[0]] : loss_.traits().margin;
      for (Index k = 0; k < n_problems_; ++k) m_(k) = offset - sign(term, rows[0], k) * f_(k, 0);
      loss_.first(n_problems_, m_.data(), s_.data(), value_.data(), theta_.data(), phi_.data());
      for (Index k = 0; k < n_problems_; ++k) {
        slope_(k, 0) -= weight * term.share * sign(term, rows[0], k) * theta_(k);
        slope_s2_(k, 0) += weight * term.share * phi_(k);
      }
    }
  }

  double sign(const StreamTerm& term, Index row, Index k) const {
    if (term.sign != 0.0) return term.sign;
    return examples_.codes[row] == (n_problems_ == 1 ? 1 : k) ? 1.0 : -1.0;
  }

  void descend(const Rows& rows, double size) {
    gradient_.setZero();
    examples_.data.means().add_weighted_rows(rows, slope_, gradient_, means_.data());
    if (loss_.uses_spread()) {
      examples_.data.covariances().add_weighted_products(rows, slope_s2_, state_.coef, gradient_, covariances_.data());
    }
    const double sharpest = loss_.traits().sharpest;
    const double steepness = std::isfinite(sharpest) ? std::max(1.0, sharpest) : 1.0;
    const auto t = static_cast<double>(++state_.steps);
    const double eta = 1.0 / (lam_ * t + steepness * std::max(state_.square + 1.0, size));
    const double share = 2.0 / (t + 1.0);
    for (Index k = 0; k < n_problems_; ++k) {
      auto w = state_.coef.row(k);
      const double slope = fit_intercept_ ? slope_(k, 0) : 0.0;
      const double seen_from_centre = state_.intercept(k) + w.dot(state_.centre);
      w = (1.0 - eta * lam_) * w - eta * (gradient_.row(k) - slope * state_.centre.transpose());
      if (fit_intercept_) state_.intercept(k) = seen_from_centre - eta * slope - w.dot(state_.centre);
    }
    state_.average += share * (state_.coef - state_.average);
    state_.average_intercept += share * (state_.intercept - state_.average_intercept);
  }

  const StreamExamples& examples_;
  const Loss& loss_;
  double lam_;
  bool fit_intercept_;
  StreamState& state_;
  Index n_problems_;
  std::vector<double> means_, row_, covariances_;
  Vector diagonal_;
  Vector one_ = Vector::Ones(1);
  Matrix gradient_;
  Matrix f_, s_, slope_, slope_s2_;
  Vector m_, value_, theta_, phi_;
};

}  // namespace

void follow(const StreamExamples& examples, const Loss& loss, double regularisation, bool fit_intercept,
            const Execution& execution, StreamState& state) {
  check::positive("regularisation", regularisation);
  check::same_size("state", state.coef.cols(), "X", examples.data.n_features(), "features");
  StreamWalk walk(examples, loss, regularisation, fit_intercept, state);
  run_tasks(1, execution, [&](Index /*task*/, int /*slot*/, Checkpoint& checkpoint) {
    for (Index row = 0; row < examples.data.n_samples(); ++row) {
      checkpoint();
      walk.step(row);
    }
  });
}

}  // namespace halosvm
