/// \file
/// The hinge of the worst point within a bounded error, max(0, m + s): robust SVM and chance constraints (Couellan and
/// Jan, 2017; spec G.1).
#pragma once

#include "halosvm/loss/expected_hinge.hpp"
#include "halosvm/loss/hinge.hpp"
#include "halosvm/loss/loss.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// psi(m, s) = max(0, m + s).
struct WorstCase {
  static constexpr const char* name = "worst_case";  ///< in the table of losses
  /// What solvers may know of it.
  static constexpr LossTraits traits = {true,     true,    true, false, 1.0,     1.0,
                                        infinity, nullptr, true, 1.0,   nullptr, {1.0, 0.0}};

  /// The hinge of m + s, whose slope at the kink is 1/2.
  static LossFirst first(double m, double s) {
    const bool spread = s >= smallest_spread;
    const LossFirst at = Hinge::first(spread ? m + s : m, 0.0);
    return {at.value, at.slope_m, spread ? at.slope_m / s : 0.0};
  }

  /// 0 but at the kink.
  static LossSecond second(double /*m*/, double /*s*/) { return {0.0, 0.0, 0.0}; }
};

/// The worst case with the expected hinge of m + s, whose width is fixed, in place of the hinge.
class SoftWorstCase final : public Loss {
 public:
  /// \param width s of the expected hinge.
  explicit SoftWorstCase(double width) : width_(width) {}

  const char* name() const override { return WorstCase::name; }
  const LossTraits& traits() const override { return soft; }

  void first(Index count, const double* m, const double* s, double* value, double* slope_m,
             double* slope_s2) const override {
    first_of_block(count, m, s, value, slope_m, slope_s2, [width = width_](double a, double b) {
      const LossFirst at = ExpectedHinge::first(a + b, width);
      return LossFirst{at.value, at.slope_m, b >= smallest_spread ? at.slope_m / b : 0.0};
    });
  }

  void second(Index count, const double* m, const double* s, double* mm, double* ms, double* ss) const override {
    second_of_block(count, m, s, mm, ms, ss, [width = width_](double a, double b) {
      const double bend = ExpectedHinge::second(a + b, width).mm;
      return LossSecond{bend, bend, bend};
    });
  }

 private:
  /// Not kinked; and its dual variables are feasible for the worst case, which makes a bound of theirs.
  static constexpr LossTraits soft = {true, true, false, false, 1.0, 1.0, infinity, nullptr, true, 1.0};

  double width_;
};

/// The worst case in the table of losses, which softens to one of a fixed width.
class WorstCaseLoss final : public BlockLoss<WorstCase> {
 public:
  std::shared_ptr<const Loss> softened(double floor) const override { return std::make_shared<SoftWorstCase>(floor); }
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
