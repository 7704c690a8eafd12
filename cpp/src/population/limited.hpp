/// \file
/// Rows with limits, one at a time: what the limits tell of the readings under each component. Private to populations.
#pragma once

#include "population/expectation.hpp"
#include "population/latent.hpp"
#include "population/propagation.hpp"

namespace halosvm::population {

/// One row. Each limit becomes, under each component, a reading with an error of its own, and the row one without
/// limits: exactly so for one limit, by expectation propagation for several.
class LimitedRow {
 public:
  LimitedRow(const Population& population, const Measurements::Prepared& data);

  /// Takes the row at a position, which is one of those with limits.
  void read(Index position);

  /// The readings under component k and what follows from them. False where V_k + S is singular.
  /// \param all false: the readings alone.
  bool condition(Index k, bool all);

  /// The row under component k as one without limits: in a block of this row, or as what is present, its values and
  /// the errors S of these, with a root of S.
  void place(Index k, LatentBlock& block);
  void place(Index k, std::vector<Index>& present, Vector& x, Matrix& S, Eigen::MatrixXd& S_root);

  Index n_present() const { return static_cast<Index>(present_.size()); }
  /// The column of each value that is there or limited, those that are there first.
  Index present(Index i) const { return present_[static_cast<std::size_t>(i)]; }
  Index n_read() const { return n_read_; }

  double log_density = 0.0;  ///< log a_k N(x; m, T) P(within the limits)
  Vector reading;            ///< of the limited values, in the order of \ref present
  Vector variance;           ///< of their additional errors
  // In the order of present, for all that is there or limited:
  Vector pull;       ///< w = T^-1 (E x - m)
  Matrix precision;  ///< T^-1 - T^-1 Cov(x) T^-1

 private:
  const Population& population_;
  const Measurements::Prepared& data_;
  std::vector<Matrix> covariances_;
  Vector log_weights_;
  Index entry_ = 0;
  Index n_read_ = 0;
  std::vector<Index> present_;
  Vector x_, scratch_, residual_, lower_, upper_, width_;
  Matrix errors_, T_, spread_, rows_, part_;
  LimitSites sites_;
};

/// The E step of the rows with limits; sums as of the engines that factorise T.
void expect_limited(const Population& population, const Measurements::Prepared& data, const Request& request,
                    std::vector<Expectation>& parts, const Execution& execution);

}  // namespace halosvm::population
