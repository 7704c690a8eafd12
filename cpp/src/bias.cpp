// The bias that minimises the objective for fixed coefficients: the root of g(b) = -dJ/db, which never increases.

#include "halosvm/local_objective.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm {
namespace {

/// g sums weights that add up to 1; below this it is rounding error.
constexpr double zero_slope = 1e-15;

/// What one pass over the examples tells about g at one b.
struct Slope {
  double g = 0.0;           ///< with half of each jump at b
  double decrease = 0.0;    ///< -dg/db of the uncertain examples
  double jump = 0.0;        ///< total weight of the certain examples whose kink is at b
  double left = -infinity;  ///< the nearest kink of a certain example below b
  double right = infinity;  ///< and above
  Index left_count = 0;     ///< kinks between the lower end of the bracket and b
  Index right_count = 0;    ///< and between b and the upper end

  void add(const Slope& other) {
    g += other.g;
    decrease += other.decrease;
    jump += other.jump;
    left = std::max(left, other.left);
    right = std::min(right, other.right);
    left_count += other.left_count;
    right_count += other.right_count;
  }
};

/// A root of g and -dg/db there.
struct Root {
  double b;
  double decrease;
};

}  // namespace

/// One problem: where each example's margin deficit vanishes, t_i = y_i - w'x_i, and its spread. m_i = y_i (t_i - b).
class LocalObjective::Bias {
 public:
  Bias(const LocalObjective& objective, Index problem, const ConstMatrixRef& W)
      : objective_(objective), problem_(problem), kinks_(static_cast<std::size_t>(objective.n_samples())) {
    // Many spreads are kept in single precision, so that the memory stays below 5 % of even narrow data; exact_bias
    // removes what the rounding does to the root.
    if (objective.n_samples() > 100000) {
      narrow_.resize(kinks_.size());
    } else {
      wide_.resize(kinks_.size());
    }
    measure(W);
  }

  Root solve(double guess) const {
    double low = infinity;
    double high = -infinity;
    double widest = 0.0;
    for (std::size_t i = 0; i < kinks_.size(); ++i) {
      low = std::min(low, kinks_[i]);
      high = std::max(high, kinks_[i]);
      widest = std::max(widest, spread(i));
    }
    low -= 8.0 * widest;
    high += 8.0 * widest;
    const bool all_certain = widest < smallest_spread;
    double b = guess >= low && guess <= high ? guess : 0.5 * (low + high);
    double last = infinity;
    for (int iteration = 0; iteration < 500; ++iteration) {
      const Slope at = slope(b, low, high);
      if (at.g + 0.5 * at.jump >= -zero_slope && at.g - 0.5 * at.jump <= zero_slope) {
        return {all_certain ? middle(b, at) : b, at.decrease};
      }
      const bool to_the_right = at.g > 0.0;
      (to_the_right ? low : high) = b;
      const double next = propose(b, at, low, high, std::abs(at.g) > 0.5 * last);
      if (next == b || !(high > low)) return {b, at.decrease};
      last = std::abs(at.g);
      b = next;
    }
    return {b, 0.0};
  }

  bool rounded() const { return wide_.empty(); }

 private:
  double spread(std::size_t i) const { return wide_.empty() ? static_cast<double>(narrow_[i]) : wide_[i]; }

  /// Fills kinks and spreads in one pass over the data.
  void measure(const ConstMatrixRef& W) {
    const Index block = objective_.data_.block_rows();
    const Chunks chunks(objective_.n_samples(), objective_.data_.task_rows());
    const int n_threads = thread_count(chunks.count(), objective_.execution_);
    std::vector<Workspace> work(static_cast<std::size_t>(n_threads), Workspace(objective_, block, 1));
    const Matrix w = W.row(problem_);
    const Vector no_bias = Vector::Zero(1);
    run_tasks(chunks.count(), objective_.execution_, [&](Index chunk, int slot, Checkpoint& checkpoint) {
      Workspace& mine = work[static_cast<std::size_t>(slot)];
      for (Index begin = chunks.begin(chunk); begin < chunks.end(chunk); begin += block) {
        checkpoint();
        const Rows rows = objective_.rows(begin, std::min(block, chunks.end(chunk) - begin));
        objective_.margins(rows, problem_, w, no_bias, mine);
        for (Index i = 0; i < rows.count; ++i) {
          const auto row = static_cast<std::size_t>(begin + i);
          kinks_[row] = objective_.labels_.sign(rows[i], problem_) * mine.m_(0, i);
          if (wide_.empty()) {
            narrow_[row] = static_cast<float>(mine.s_(0, i));
          } else {
            wide_[row] = mine.s_(0, i);
          }
        }
      }
    });
  }

  /// g and its surroundings at b, within the bracket (low, high).
  Slope slope(double b, double low, double high) const {
    const Index n = objective_.n_samples();
    const Chunks chunks(n, 4096);
    std::vector<Slope> partial(static_cast<std::size_t>(chunks.count()));
    run_tasks(chunks.count(), objective_.execution_, [&](Index chunk, int, Checkpoint& checkpoint) {
      constexpr Index block = 256;
      double m[block];
      double s[block];
      double value[block];
      double slope_m[block];
      double mm[block];
      double unused[block];
      Slope& sum = partial[static_cast<std::size_t>(chunk)];
      for (Index begin = chunks.begin(chunk); begin < chunks.end(chunk); begin += block) {
        checkpoint();
        const Index count = std::min(block, chunks.end(chunk) - begin);
        const Rows rows = objective_.rows(begin, count);
        for (Index i = 0; i < count; ++i) {
          const auto row = static_cast<std::size_t>(begin + i);
          m[i] = objective_.labels_.sign(rows[i], problem_) * (kinks_[row] - b);
          s[i] = spread(row);
        }
        objective_.loss_->first(count, m, s, value, slope_m, unused);
        objective_.loss_->second(count, m, s, mm, value, unused);
        for (Index i = 0; i < count; ++i) {
          const double c = objective_.weight(rows[i]);
          sum.g += c * objective_.labels_.sign(rows[i], problem_) * slope_m[i];
          sum.decrease += c * mm[i];
          if (s[i] < smallest_spread && c > 0.0)
            add_kink(kinks_[static_cast<std::size_t>(begin + i)], c, b, low, high, sum);
        }
      }
    });
    Slope total;
    for (const Slope& part : partial) total.add(part);
    return total;
  }

  static void add_kink(double t, double c, double b, double low, double high, Slope& sum) {
    if (t == b) sum.jump += c;
    if (t < b) {
      sum.left = std::max(sum.left, t);
      sum.left_count += t > low ? 1 : 0;
    }
    if (t > b) {
      sum.right = std::min(sum.right, t);
      sum.right_count += t < high ? 1 : 0;
    }
  }

  /// The middle of the interval on which g = 0, given that it is flat around b.
  static double middle(double b, const Slope& at) {
    const bool from = at.jump == 0.0 || std::abs(at.g + 0.5 * at.jump) <= zero_slope;
    const bool to = at.jump == 0.0 || std::abs(at.g - 0.5 * at.jump) <= zero_slope;
    const double left = from && std::isfinite(at.left) ? at.left : b;
    const double right = to && std::isfinite(at.right) ? at.right : b;
    return 0.5 * (left + right);
  }

  /// Where to look next: Newton's step if it stays inside the bracket and the last one paid; the next kink if few are
  /// left, since g jumps there; otherwise the middle of the bracket.
  static double propose(double b, const Slope& at, double low, double high, bool slow) {
    constexpr Index few = 16;
    const bool to_the_right = low == b;
    const Index kinks = to_the_right ? at.right_count : at.left_count;
    if (kinks > 0 && kinks <= few) return to_the_right ? at.right : at.left;
    const double newton = at.decrease > 0.0 ? b + at.g / at.decrease : infinity;
    if (!slow && newton > low && newton < high) return newton;
    return 0.5 * (low + high);
  }

  const LocalObjective& objective_;
  Index problem_;
  std::vector<double> kinks_;
  std::vector<double> wide_;
  std::vector<float> narrow_;
};

Vector LocalObjective::exact_bias(const ConstMatrixRef& W, const ConstVectorRef& guess) const {
  Vector b = Vector::Zero(W.rows());
  if (!fit_intercept_) return b;
  Vector decrease(W.rows());
  bool rounded = false;
  for (Index k = 0; k < W.rows(); ++k) {
    const Bias bias(*this, k, W);
    const Root root = bias.solve(guess(k));
    b(k) = root.b;
    decrease(k) = root.decrease;
    rounded = rounded || bias.rounded();
  }
  if (rounded && uses_spread()) {  // one Newton step with the spreads themselves
    constexpr double small = 1e-6;
    Evaluation at(W.rows(), n_features());
    value_and_gradient(W, b, at);
    for (Index k = 0; k < W.rows(); ++k) {
      if (decrease(k) > 0.0 && std::abs(at.intercept(k)) < small) b(k) -= at.intercept(k) / decrease(k);
    }
  }
  return b;
}

}  // namespace halosvm
