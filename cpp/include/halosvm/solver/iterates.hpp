/// \file
/// The weights of a walk by gradient steps, their average, and the centre of the features: steps go in, each of which
/// costs as much as the columns that its examples store, and the iterates come out.
#pragma once

#include "halosvm/core/types.hpp"
#include "halosvm/gaussians/support.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// What a gradient step does to the weights of problem k: they become kept(k) w + centred(k) c - rate gradient, but not
/// longer than the radius.
struct GradientStep {
  Vector kept;               ///< one for each problem
  Vector centred;            ///< likewise
  double rate = 0.0;         ///< times the gradient
  double radius = infinity;  ///< the largest |w|
  double share = 0.0;        ///< of the new weights in the average
};

/// Where a walk is: weights w and their average a in each problem, and a centre c. A step multiplies (c, w, a) in every
/// column by one triangular matrix and changes few columns beside. So the matrices are multiplied, and the arrays hold
/// c', w' and a' with
///     c = scale c',  w = m0 c' + m1 w',  a = m2 c' + m3 w' + m4 a',
/// m a row of \ref factors. After \ref settle the arrays are c, w and a themselves.
struct Iterates {
  Matrix coef;                 ///< w', n_problems x n_features
  Matrix average;              ///< a', likewise
  Vector centre;               ///< c', n_features
  double scale = 1.0;          ///< of the centre
  Matrix factors;              ///< m, n_problems x 5
  double centre_square = 0.0;  ///< |c|^2
  Vector along_centre;         ///< w'c for each problem
  Vector square;               ///< |w|^2 for each problem
  Index changed = 0;           ///< columns and factors that steps have changed since the arrays were settled

  Iterates() = default;
  /// At weights, n_problems x n_features, with averages of 0.
  Iterates(Matrix weights, Vector features_centre);

  /// The weights, right in the columns of the support. \param memory for them, of the same shape, where these are few.
  const Matrix& weights(const Support& support, Matrix& memory);
  /// Moves the centre towards an example by a share of the way. \param x n_features numbers, 0 outside of the support.
  /// \returns |x - c|^2 for the centre c before.
  double move_centre(const Support& support, const ConstVectorRef& x, double share);
  /// Takes a step. \param gradient n_problems x n_features, 0 outside of the support.
  void advance(const Support& support, const GradientStep& step, const ConstMatrixRef& gradient);
  /// Makes the arrays the iterates themselves.
  void settle();

 private:
  void measure();
  bool must_settle(const Support& support, double least, double largest);
  void advance_columns(const Support& support, const GradientStep& step, const ConstMatrixRef& gradient, Index k);
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
