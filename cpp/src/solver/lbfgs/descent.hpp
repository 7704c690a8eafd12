/// \file
/// One problem's L-BFGS walk. It proposes points; whoever owns the data evaluates them and reports value and gradient.
/// Private to L-BFGS.
#pragma once

#include "linalg/cholesky_factor.hpp"
#include "halosvm/core/types.hpp"

#include <deque>
#include <memory>
#include <utility>

namespace halosvm {

class Descent {
 public:
  /// \param start u = (w, intercept for centred means). \param variance of the features, and 1 for the intercept.
  Descent(Vector start, Vector variance, double regularisation);

  /// Takes \p scale times a matrix as model of the Hessian, in place of the diagonal one.
  void precondition(std::shared_ptr<const CholeskyFactor> factor, double scale) {
    factor_ = std::move(factor);
    scale_ = scale;
  }

  /// The point to evaluate next.
  const Vector& trial() const { return trial_; }
  /// The best point so far.
  const Vector& at() const { return at_; }
  /// Evaluation and mean curvature there.
  const Vector& gradient() const { return gradient_; }
  double curvature() const { return curvature_; }
  /// Whether any point has been evaluated: a problem that is at rest from the start never is.
  bool has_been_seen() const { return gradient_.size() > 0; }
  /// Whether any step has been taken from the start.
  bool has_moved() const { return !pairs_.empty(); }
  /// Whether a value at the trial point is not above that of the best point.
  bool leads(double value) const;
  /// How much lower than at the best point the model of the function is where the step to the trial point leads.
  double promise() const { return -0.5 * slope_; }
  /// No step lowers the value any more.
  bool exhausted() const { return exhausted_; }

  /// Forgets curvature: the function has changed.
  void restart();

  /// Moves to a point that is known to be no worse, and continues from there once it is evaluated.
  void jump(const Vector& point);

  /// Takes in value, gradient and mean curvature at the trial point, and proposes the next one.
  void observe(double value, const Vector& gradient, double curvature);

 private:
  struct Pair {
    Vector step;
    Vector change;
    double inverse_product;
  };

  bool accepted(double value, const Vector& gradient) const;
  void shorten(double value);
  void remember(Vector step, Vector change);
  Vector modelled(const Vector& q, double curvature) const;
  Vector scaled(Vector q, double curvature) const;

  Vector at_;
  Vector variance_;
  double regularisation_;
  std::shared_ptr<const CholeskyFactor> factor_;
  double scale_ = 1.0;
  Vector trial_;
  Vector gradient_;
  Vector direction_;
  double value_ = 0.0;
  double curvature_ = 0.0;
  double slope_ = 0.0;
  double length_ = 0.0;
  bool started_ = false;
  bool jumped_ = false;
  bool exhausted_ = false;
  std::deque<Pair> pairs_;
};

}  // namespace halosvm
