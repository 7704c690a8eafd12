/// \file
/// The search for the intercept of one problem: the root b of g(b) = -dJ/db, which never increases. What g is at the
/// points it asks for, it is told.
#pragma once

#include "halosvm/core/types.hpp"

namespace halosvm {

/// The examples of positive weight as the search sees them: where each margin deficit m_i = y_i (t_i - b) vanishes,
/// and the spreads.
struct Zeros {
  double lowest = infinity;          ///< of all t_i
  double highest = -infinity;        ///< likewise
  double last_positive = -infinity;  ///< the highest t_i of a positive example
  double first_negative = infinity;  ///< the lowest t_i of a negative one
  double narrowest = infinity;       ///< spread
  double widest = 0.0;               ///< spread

  void add(const Zeros& other);
};

/// What one pass over the examples tells about g at one b, and about kinks: the t_i of certain examples.
struct Slope {
  double g = 0.0;           ///< sum_i c_i y_i psi_m, with half of each jump at b
  double size = 0.0;        ///< sum_i c_i |psi_m|, of which rounding errors are a fraction
  double decrease = 0.0;    ///< -dg/db away from kinks, when the search asks for it
  double jump = 0.0;        ///< total weight of the kinks at b
  double left = -infinity;  ///< the nearest kink below b
  double right = infinity;  ///< and above
  Index left_count = 0;     ///< kinks between the lower end of the bracket and b
  Index right_count = 0;    ///< and between b and the upper end

  void add(const Slope& other);
};

class InterceptSearch {
 public:
  /// \param kinked whether g jumps at kinks. \param guess where to start; anything.
  /// \param zero_slope |g| up to this fraction of the slopes it sums counts as 0.
  InterceptSearch(const Zeros& zeros, bool kinked, double guess, double zero_slope);

  bool done() const { return done_; }
  /// Where g is asked for; the root when done.
  double b() const { return b_; }
  /// The bracket: g(low) > 0 > g(high). Infinite where that is not known.
  double low() const { return low_; }
  double high() const { return high_; }
  bool needs_kinks() const { return kinks_; }
  bool needs_decrease() const { return !smooth_step_ && (points_ == 0 || !kinks_); }

  /// Takes the slope at b and moves b.
  void observe(const Slope& at);

  /// -dg/db at the root, or near it; 0 when unknown.
  double decrease() const { return decrease_; }
  double size() const { return size_; }

 private:
  struct Point {
    double b;
    double g;
  };

  void fit(const Slope& at);
  void move(const Slope& at);
  void end_at(double b);

  Zeros zeros_;
  bool kinks_;
  bool all_certain_;
  double zero_slope_;
  double stride_;
  double low_ = -infinity;
  double high_ = infinity;
  double b_;
  bool done_ = false;

  Point last_{0.0, 0.0};
  Point before_{0.0, 0.0};
  double chord_ = 0.0;  ///< slope from one to the other
  int points_ = 0;
  double decrease_ = 0.0;
  double size_ = 0.0;
  double last_step_ = infinity;
  double step_before_last_ = infinity;
  double least_step_ = 1.0;   ///< in units of the last place
  bool smooth_step_ = false;  ///< b comes from a fit, so that another fit will be good
  int halvings_ = 0;
  Point best_{0.0, infinity};
  int passes_ = 0;
};

}  // namespace halosvm
