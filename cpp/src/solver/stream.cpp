// Gradient descent along a stream: examples come in one after another, the state of the walk goes out.

#include "halosvm/solver/stream.hpp"

#include "halosvm/core/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halosvm {
namespace {

class StreamWalk {
 public:
  StreamWalk(const StreamExamples& examples, const Loss& loss, double regularisation, bool fit_intercept,
             StreamState& state)
      : examples_(examples),
        covariances_(examples.data.covariances()),
        loss_(loss),
        lam_(regularisation),
        fit_intercept_(fit_intercept),
        state_(state),
        n_problems_(state.intercept.size()),
        uncertain_(loss.uses_spread() && !covariances_.certain()),
        in_a_line_(uncertain_ ? covariances_.in_basis(1) : nullptr),
        support_(examples.data.n_features()),
        means_scratch_(static_cast<std::size_t>(examples.data.means().scratch_size(1, n_problems_))),
        scratch_(static_cast<std::size_t>(covariances_.scratch_size({1, std::max<Index>(n_problems_, 1)}))),
        whole_(examples.data.n_features()),
        gradient_(Matrix::Zero(n_problems_, examples.data.n_features())),
        f_(n_problems_, 1),
        s_(n_problems_, 1),
        slope_(n_problems_, 1),
        slope_s2_(n_problems_, 1),
        m_(n_problems_),
        value_(n_problems_),
        theta_(n_problems_),
        phi_(n_problems_) {
    if (examples.data.means().sparse()) {
      row_.setZero(1, examples.data.n_features());
      weights_.setZero(n_problems_, examples.data.n_features());
    }
    step_.kept.resize(n_problems_);
    step_.centred.resize(n_problems_);
  }

  void step(Index row) {
    const double weight = examples_.weights != nullptr ? examples_.weights[row] : 1.0;
    if (weight == 0.0) return;
    const Rows rows{row, 1};
    support_.find(examples_.data, rows, uncertain_ && in_a_line_ == nullptr);
    const double size = weight * look(rows, weight);
    slopes(rows, weight);
    descend(size);
  }

 private:
  /// Counts an example among those that tell where the features are; returns its own |x|^2 + 1 + tr S.
  double look(const Rows& rows, double weight) {
    state_.weight += weight;
    const double share = weight / state_.weight;
    const double kept = fit_intercept_ ? 1.0 - share : 1.0;
    const double distance = move_centre(rows, 1.0 - kept);
    const double spread = uncertain_ ? trace(rows) : 0.0;
    state_.square += share * (kept * distance + spread - state_.square);
    return kept * kept * distance + 1.0 + spread;
  }

  double move_centre(const Rows& rows, double share) {
    const Means& means = examples_.data.means();
    if (support_.all()) {
      return state_.iterates.move_centre(support_, means.block(rows, whole_.data()).row(0).transpose(), share);
    }
    means.add_weighted_rows(rows, one_.transpose(), row_, means_scratch_.data());
    const double distance = state_.iterates.move_centre(support_, row_.row(0).transpose(), share);
    support_.clear(row_);
    return distance;
  }

  /// tr S. Covariances alike in every direction are their variance in one, \ref variance_.
  double trace(const Rows& rows) {
    if (in_a_line_ != nullptr) {
      variance_.setZero();
      in_a_line_->add_weighted_diagonals(rows, one_, variance_, scratch_.data());
      return variance_(0) * static_cast<double>(covariances_.n_features());
    }
    if (support_.all()) {
      whole_.setZero();
      covariances_.add_weighted_diagonals(rows, one_, whole_, scratch_.data());
      return whole_.sum();
    }
    covariances_.add_weighted_diagonals(rows, one_, row_.row(0).transpose(), scratch_.data());
    double sum = 0.0;
    for (const Index j : support_.columns()) sum += row_(0, j);
    support_.clear(row_);
    return sum;
  }

  /// Slopes of the example's loss in f and in s^2 / 2, times its weight, and its gradient from them.
  void slopes(const Rows& rows, double weight) {
    const Means& means = examples_.data.means();
    const Matrix& weights = state_.iterates.weights(support_, weights_);
    means.multiply(rows, weights, f_, means_scratch_.data());
    f_.col(0) += state_.intercept;
    s_.setZero();
    if (loss_.uses_spread()) {
      if (in_a_line_ != nullptr) {
        s_.col(0) = variance_(0) * state_.iterates.square;
      } else {
        covariances_.bilinear(rows, weights, weights, s_, scratch_.data());
      }
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
    means.add_weighted_rows(rows, slope_, gradient_, means_scratch_.data());
    if (uncertain_ && in_a_line_ == nullptr) {
      covariances_.add_weighted_products(rows, slope_s2_, weights, gradient_, scratch_.data());
    }
  }

  double sign(const StreamTerm& term, Index row, Index k) const {
    if (term.sign != 0.0) return term.sign;
    return examples_.codes[row] == (n_problems_ == 1 ? 1 : k) ? 1.0 : -1.0;
  }

  void descend(double size) {
    const double sharpest = loss_.traits().sharpest;
    const double steepness = std::isfinite(sharpest) ? std::max(1.0, sharpest) : 1.0;
    const auto t = static_cast<double>(++state_.steps);
    step_.rate = 1.0 / (lam_ * t + steepness * std::max(state_.square + 1.0, size));
    step_.share = 2.0 / (t + 1.0);
    step_.kept.setConstant(1.0 - step_.rate * lam_);
    if (in_a_line_ != nullptr) step_.kept -= step_.rate * variance_(0) * slope_s2_.col(0);
    step_.centred.setZero();
    if (fit_intercept_) {
      step_.centred = step_.rate * slope_.col(0);
      // The intercept is that of features seen from the origin; a step is one of features seen from the centre.
      state_.intercept += state_.iterates.along_centre - step_.centred;
    }
    state_.iterates.advance(support_, step_, gradient_);
    support_.clear(gradient_);
    if (fit_intercept_) state_.intercept -= state_.iterates.along_centre;
    state_.average_intercept += step_.share * (state_.intercept - state_.average_intercept);
  }

  const StreamExamples& examples_;
  const Covariances& covariances_;
  const Loss& loss_;
  double lam_;
  bool fit_intercept_;
  StreamState& state_;
  Index n_problems_;
  bool uncertain_;
  std::shared_ptr<const Covariances> in_a_line_;  ///< of covariances alike in every direction, or null
  Support support_;
  std::vector<double> means_scratch_, scratch_;
  Vector one_ = Vector::Ones(1);
  Vector variance_ = Vector::Zero(1);
  Vector whole_;     ///< numbers of one example in all columns
  Matrix row_;       ///< in few columns; 0 between uses
  Matrix weights_;   ///< likewise
  Matrix gradient_;  ///< 0 between steps
  Matrix f_, s_, slope_, slope_s2_;
  Vector m_, value_, theta_, phi_;
  GradientStep step_;
};

/// A state may come from a file.
void require_shapes(const StreamState& state) {
  const Iterates& at = state.iterates;
  const Index n_problems = at.coef.rows();
  const Index n_features = at.coef.cols();
  const bool shapes_fit = at.average.rows() == n_problems && at.average.cols() == n_features &&
                          at.centre.size() == n_features && at.factors.rows() == n_problems && at.factors.cols() == 5 &&
                          at.along_centre.size() == n_problems && at.square.size() == n_problems &&
                          state.intercept.size() == n_problems && state.average_intercept.size() == n_problems;
  check::require(shapes_fit, "state", "has arrays of different shapes");
}

void require_numbers(const StreamExamples& examples, const Execution& execution) {
  examples.data.check_once(execution);
  check::require(!examples.terms.empty(), "terms", "must not be empty");
  for (const StreamTerm& term : examples.terms) {
    check::not_negative("share", term.share);
    if (term.sign == 0.0) check::given(examples.codes, "codes");
  }
  for (Index i = 0; i < examples.data.n_samples(); ++i) {
    const auto require = [i](const double* numbers, double lowest, const char* argument, const char* rule) {
      if (numbers == nullptr || (numbers[i] >= lowest && numbers[i] < infinity)) return;
      check::fail_at(argument, i, -1, numbers[i], rule);
    };
    require(examples.weights, 0.0, "weights", "a weight must be >= 0 and finite");
    require(examples.variances, 0.0, "variances", "a variance must be >= 0 and finite");
    for (const StreamTerm& term : examples.terms) {
      require(term.offsets, std::numeric_limits<double>::lowest(), "offsets", "an offset must be finite");
    }
  }
}

}  // namespace

StreamState::StreamState(const LinearModel& start)
    : iterates(start.coef, Vector::Zero(start.coef.cols())),
      intercept(start.intercept),
      average_intercept(Vector::Zero(start.intercept.size())) {}

LinearModel StreamState::model() const {
  require_shapes(*this);
  Iterates now = iterates;
  now.settle();
  LinearModel model;
  model.coef = steps > 0 ? now.average : now.coef;
  model.intercept = steps > 0 ? average_intercept : intercept;
  return model;
}

void follow(const StreamExamples& examples, const Loss& loss, double regularisation, bool fit_intercept,
            const Execution& execution, StreamState& state) {
  check::positive("regularisation", regularisation);
  require_shapes(state);
  check::same_size("state", state.iterates.coef.cols(), "X", examples.data.n_features(), "features");
  require_numbers(examples, execution);
  StreamWalk walk(examples, loss, regularisation, fit_intercept, state);
  run_tasks(1, execution, [&](Index /*task*/, int /*slot*/, Checkpoint& checkpoint) {
    for (Index row = 0; row < examples.data.n_samples(); ++row) {
      checkpoint();
      walk.step(row);
    }
  });
}

}  // namespace halosvm
