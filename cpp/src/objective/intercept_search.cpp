// The search for a root: slopes at the points it asked for come in, the next point goes out.

#include "objective/intercept_search.hpp"

#include "halosvm/loss/loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halosvm {
namespace {

/// Up to so many kinks are tried one after another: g jumps there.
constexpr Index few_kinks = 4;
/// Strides in the range of the t_i.
constexpr double n_strides = 64.0;
/// Ends a search that rounding keeps alive; none has been seen to need a fifth of them.
constexpr int most_passes = 500;
constexpr double epsilon = std::numeric_limits<double>::epsilon();

}  // namespace

void Zeros::add(const Zeros& other) {
  lowest = std::min(lowest, other.lowest);
  highest = std::max(highest, other.highest);
  last_positive = std::max(last_positive, other.last_positive);
  first_negative = std::min(first_negative, other.first_negative);
  narrowest = std::min(narrowest, other.narrowest);
  widest = std::max(widest, other.widest);
}

void Slope::add(const Slope& other) {
  g += other.g;
  size += other.size;
  decrease += other.decrease;
  jump += other.jump;
  left = std::max(left, other.left);
  right = std::min(right, other.right);
  left_count += other.left_count;
  right_count += other.right_count;
}

InterceptSearch::InterceptSearch(const Zeros& zeros, bool kinked, double guess, double zero_slope)
    : zeros_(zeros),
      kinks_(kinked && zeros.narrowest < smallest_spread),
      all_certain_(zeros.widest < smallest_spread),
      zero_slope_(zero_slope) {
  const double low = zeros.lowest - 8.0 * zeros.widest;
  const double high = zeros.highest + 8.0 * zeros.widest;
  // At least 1, the scale of losses that are not homogeneous.
  const double width = std::max(high - low, 1.0);
  stride_ = std::max(width / n_strides, 4.0 * epsilon * std::max(-low, high));
  constexpr double far = 16.0;  // a guess so far off is none
  const bool near = guess >= low - far * width && guess <= high + far * width;
  b_ = near ? guess : 0.5 * low + 0.5 * high;
}

void InterceptSearch::observe(const Slope& at) {
  fit(at);
  size_ = at.size;
  if (at.size == 0.0 && all_certain_) {
    end_at(0.5 * zeros_.last_positive + 0.5 * zeros_.first_negative);
    return;
  }
  const double zero = zero_slope_ * at.size;
  const double jump = kinks_ ? 0.5 * at.jump : 0.0;
  if (at.g + jump >= -zero && at.g - jump <= zero) {
    // Of an interval between certain examples on which g = 0, the middle.
    const bool from = kinks_ && all_certain_ && at.g + jump <= zero && std::isfinite(at.left);
    const bool to = kinks_ && all_certain_ && at.g - jump >= -zero && std::isfinite(at.right);
    if (from || to) {
      end_at(0.5 * (from ? at.left : b_) + 0.5 * (to ? at.right : b_));
    } else {
      end_at(b_);
    }
    return;
  }
  if (std::abs(at.g) < best_.g) best_ = {b_, std::abs(at.g)};
  (at.g > 0.0 ? low_ : high_) = b_;
  if (++passes_ == most_passes) {
    end_at(best_.b);
  } else {
    move(at);
  }
}

/// The slope of g at b from the last three points, or two if they are all, or from what the pass says. The points far
/// off do no harm once three lie close together: the error of a step is the product of the last three errors.
void InterceptSearch::fit(const Slope& at) {
  const Point here{b_, at.g};
  if (needs_decrease() && at.decrease > 0.0) {
    decrease_ = at.decrease;
    chord_ = -at.decrease;
    before_ = here;
    points_ = 2;
  } else if (points_ > 0) {
    const double chord = (here.g - last_.g) / (here.b - last_.b);
    const double slope = points_ == 2 ? chord + (here.g - before_.g) / (here.b - before_.b) - chord_ : chord;
    decrease_ = slope < 0.0 ? -slope : -chord;
    chord_ = chord;
    before_ = last_;
    points_ = 2;
  } else {
    points_ = 1;
  }
  last_ = here;
}

/// Moves b: to the root of the fit if that stays inside the bracket and steps halve in two; to the next kink if few
/// are left; otherwise to the middle of the bracket, or by ever longer strides to where it may end.
void InterceptSearch::move(const Slope& at) {
  const bool to_the_right = at.g > 0.0;
  const double end = to_the_right ? high_ : low_;
  const Index kinks = to_the_right ? at.right_count : at.left_count;
  const double kink = to_the_right ? at.right : at.left;

  const double place = epsilon * std::max(std::abs(b_), std::numeric_limits<double>::min());
  double step = decrease_ > 0.0 ? at.g / decrease_ : std::copysign(infinity, at.g);
  const bool tiny = std::abs(step) < 2.0 * place;
  if (tiny) {  // only the bracket tells whether this is the root, so it must close
    step = std::copysign(least_step_ * place, at.g);
    least_step_ *= 8.0;
  }
  const double target = b_ + step;
  // Where g hardly changes, a fit may lead anywhere.
  const double limit = std::isinf(end) ? b_ + std::copysign(n_strides * stride_, at.g) : end;
  const bool inside = to_the_right ? target < limit : target > limit;
  double next = kink;
  smooth_step_ = false;
  if (kinks > few_kinks || kinks == 0) {
    if (inside && (tiny || std::abs(step) <= 0.5 * step_before_last_)) {
      next = target;
      smooth_step_ = true;
    } else if (std::isinf(end)) {
      next = b_ + std::copysign(stride_, at.g);
      stride_ *= 4.0;
    } else {
      // Many kinks may share a place, which halving would find late.
      next = ++halvings_ % 4 == 0 && kinks > 0 ? kink : 0.5 * b_ + 0.5 * end;
    }
  }
  if (next == b_ || next == end) {
    end_at(best_.b);
    return;
  }
  step_before_last_ = last_step_;
  last_step_ = std::abs(next - b_);
  b_ = next;
}

void InterceptSearch::end_at(double b) {
  b_ = b;
  done_ = true;
}

}  // namespace halosvm
