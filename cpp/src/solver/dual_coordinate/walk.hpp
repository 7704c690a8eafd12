/// \file
/// Coordinate ascent in the dual variables of one problem: examples come in, dual variables and their w go out.
/// Private to the solvers.
#pragma once

#include "halosvm/objective/local_objective.hpp"

#include <cstdint>
#include <vector>

namespace halosvm {

/// With u_i = c_i theta_i / lam, C_i = c_i end / lam and h_i = lam bend / c_i the dual of certain examples is, over
/// lam,
///     max  sum_i (o_i u_i - h_i u_i^2 / 2) - |w|^2 / 2,   w = sum_i u_i y_i x_i,   0 <= u_i <= C_i,   sum_i u_i y_i =
///     0.
///
/// One u_i at a time takes its best value, in random order (Hsieh et al., 2008). The last condition, which would forbid
/// that, is replaced by a proximal point in b: sum u y has the price b + pull sum u y / 2, and b moves on by
/// pull sum u y after each epoch, the method of multipliers. Variables that stay at a bound are passed over until a
/// certificate shows that they should not. Where epochs gain little, conjugate gradients on the face of the variables
/// between their bounds (Face) do what single steps cannot.
///
/// The pull follows what sum u y costs, |sum u y| times the mean of |m| over all examples: over those that still take
/// part, whose m vanish, it would seem to cost nothing, and b would stand still.
class CoordinateWalk {
 public:
  /// \param squares |x_i|^2 of all rows of the data. Both must outlive the walk. \param most passes that it may take.
  CoordinateWalk(const LocalObjective& problem, const Vector& squares, Index most);

  /// Epochs until the gap seems to be at most \p enough of the dual, or \p passes over the data are done in all.
  void run(double enough, double passes, Checkpoint& checkpoint);

  /// Whether few enough variables are between their bounds to find their best values to rounding.
  bool can_finish() const;
  /// Does so. If those at bounds are right, what is left is the optimum, whatever the order and number of rows.
  void finish(Checkpoint& checkpoint);

  /// What it takes to have the gap of the estimate certified.
  double estimate() const { return estimate_; }
  /// Rows read so far over the rows that there are.
  double passes() const { return rows_read_ / static_cast<double>(all_.size()); }
  /// Epochs no longer get ahead.
  bool exhausted() const { return epoch_ - ahead_ >= patience; }
  /// The intercept so far.
  double intercept() const { return intercept_; }

  /// All variables take part again.
  void take_all();

  /// Fills \p v with dual variables near u that are feasible but for rounding: those between their bounds make up for
  /// sum u y, and if they cannot, all of the heavier side are scaled down.
  void make_feasible(VectorRef v) const;

  /// Rows of the data that have weight.
  const std::vector<Index>& rows() const { return all_; }
  /// h_i.
  double bend(Index row) const { return bend_ == 0.0 ? 0.0 : lam_ * bend_ / problem_.weight(row); }

 private:
  static constexpr Index patience = 500;

  double sign(Index row) const { return problem_.sign(row, 0); }
  double upper(Index row) const { return box_ * problem_.weight(row); }
  bool is_free(Index row) const { return u_(row) > 0.0 && u_(row) < upper(row); }
  void shuffle();
  void epoch(Checkpoint& checkpoint);
  double step(Index row, double score);
  void pull_by(double pull);
  void move_on();
  bool is_slow();
  void solve_face(double strength, Checkpoint& checkpoint);

  const LocalObjective& problem_;
  const Vector& squares_;
  double lam_;
  double end_;
  double bend_;
  double box_;  ///< end / lam
  bool intercept_is_free_;
  double most_;
  std::vector<Index> all_;    ///< rows of the data that have weight
  std::vector<Index> order_;  ///< those of them that take part, in the order of the epoch
  Vector u_;
  Vector w_;
  Vector scratch_;
  double unit_ = 1.0;       ///< the mean of |x|^2
  double pull_ = 0.0;       ///< 1 over the curvature of the proximal term
  double centre_ = 0.0;     ///< the proximal point
  double intercept_ = 0.0;  ///< centre + pull sum u y
  double excess_ = 0.0;     ///< sum u y
  double dual_ = 0.0;       ///< sum (o u - h u^2 / 2) - |w|^2 / 2
  double rows_read_ = 0.0;
  std::uint64_t draw_ = 0;
  Index epoch_ = 0;

  double low_ = -infinity;  ///< slopes of the last epoch beyond which variables at a bound rest
  double high_ = infinity;
  double lowest_ = 0.0;  ///< slopes of this one
  double highest_ = 0.0;
  double gap_ = 0.0;        ///< sum of the gaps of this epoch's examples, when they had their turn
  double deviation_ = 0.0;  ///< sum of |m|
  double miss_ = 0.0;       ///< mean of |m|, when all examples last took part
  bool rests_ = false;      ///< whether the variable of the last step is to be passed over
  double estimate_ = infinity;

  double best_ = infinity;  ///< estimate, when it last fell
  Index ahead_ = 0;
  double checked_ = infinity;  ///< estimate when it was last asked whether epochs are slow
  Index solved_ = 0;           ///< epoch of the last work on the face
};

}  // namespace halosvm
