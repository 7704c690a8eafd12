/// \file
/// Expectation propagation (Minka 2001) for a Gaussian within limits, one of them exactly: for each limited coordinate
/// a reading with an error of its own takes the place of the limit. Private to populations.
#pragma once

#include "population/symmetric.hpp"

namespace halosvm::population {

class LimitSites {
 public:
  /// Finds the sites of N(0, covariance) within the limits.
  /// \param covariance c x c, positive definite. \param lower, upper relative to the mean, infinite where there is
  /// none.
  /// \param width upper - lower, where both are finite.
  void fit(const ConstMatrixRef& covariance, const Vector& lower, const Vector& upper, const Vector& width);

  /// log P(within the limits), exact for one of them and else of the approximation; -infinity where it underflows.
  double log_mass = 0.0;
  /// Readings, relative to the mean, and the variances of their errors, > 0: given these, in place of the limits, the
  /// Gaussian has the moments that it has within the limits. A limit that says nothing has a huge variance.
  Vector reading;
  Vector variance;
  /// (covariance + diag(variance))^-1, and that times \ref reading.
  Matrix precision;
  Vector pull;
  int sweeps = 0;          ///< until the moments rested
  bool converged = false;  ///< whether they did

 private:
  void sweep(double step);
  void update(Index i, double site_precision, double site_pull);
  void finish();

  // All in units of the standard deviations before the limits.
  Vector scale_;
  Matrix prior_;    ///< correlations
  Matrix C_;        ///< covariance within all sites
  Vector mean_;     ///< mean within all sites
  Vector tau_, b_;  ///< site i is exp(b x - tau x^2 / 2)
  Vector kept_;     ///< 1 - tau C_ii, the part of the cavity's variance that its site leaves
  Vector cavity_;   ///< kept times the cavity's mean
  Vector lower_, upper_, width_;
  double change_ = 0.0;
  Matrix root_;
};

}  // namespace halosvm::population
