/// \file
/// The expected Huber hinge E h(m + s Z), Z ~ N(0, 1), of h(u) = 0, u^2 / 2 or u - 1/2 for u below 0, in [0, 1] or
/// above 1: one side of Huber's loss (spec K.3). It is the mean of the expected hinges of m - t for t in [0, 1].
#pragma once

#include "halosvm/loss/expected_hinge.hpp"
#include "halosvm/loss/expected_squared_hinge.hpp"
#include "halosvm/loss/loss.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// psi(m, s) = [Q(m, s) - Q(m - 1, s)] / 2 with the expected squared hinge Q.
struct ExpectedHuberHinge {
  static constexpr const char* name = "expected_huber_hinge";  ///< in the table of losses
  /// What solvers may know of it.
  static constexpr LossTraits traits = {true, false,   false, false, 1.0,     1.0,
                                        1.0,  nullptr, false, 0.0,   nullptr, {1.0, 1.0}};

  /// Value and slopes, by the half that does not cancel.
  static LossFirst first(double m, double s) {
    if (is_flat(m, s)) {
      return mean<LossFirst>(m, [s](double u) { return ExpectedHinge::first(u, s); });
    }
    if (!(m > 0.5)) return half_difference(ExpectedSquaredHinge::first(m, s), ExpectedSquaredHinge::first(m - 1.0, s));
    const double n = 1.0 - m;  // h(u) - h(1 - u) = u - 1/2
    const LossFirst at = half_difference(ExpectedSquaredHinge::first(n, s), ExpectedSquaredHinge::first(n - 1.0, s));
    return {(m - 0.5) + at.value, 1.0 - at.slope_m, at.slope_s2};
  }

  /// Second derivatives, likewise.
  static LossSecond second(double m, double s) {
    if (is_flat(m, s)) {
      return mean<LossSecond>(m, [s](double u) { return ExpectedHinge::second(u, s); });
    }
    const bool low = !(m > 0.5);
    const double n = low ? m : 1.0 - m;
    const LossSecond at = half_difference(ExpectedSquaredHinge::second(n, s), ExpectedSquaredHinge::second(n - 1.0, s));
    return {at.mm, low ? at.ms : -at.ms, at.ss};
  }

 private:
  /// Whether the hinges of m and m - 1 differ so little that their difference would cancel. There six nodes of Gauss
  /// and Legendre have a relative error below 1e-15.
  static bool is_flat(double m, double s) { return s >= 2.0 && (m < 0.0 ? -m : m) < s * s; }

  static constexpr int n_nodes = 6;
  static constexpr double nodes[n_nodes] = {0.033765242898423986, 0.16939530676686774, 0.3806904069584015,
                                            0.6193095930415985,   0.8306046932331322,  0.966234757101576};
  static constexpr double shares[n_nodes] = {0.08566224618958517, 0.18038078652406930, 0.23395696728634552,
                                             0.23395696728634552, 0.18038078652406930, 0.08566224618958517};

  static LossFirst half_difference(const LossFirst& a, const LossFirst& b) {
    return {0.5 * (a.value - b.value), 0.5 * (a.slope_m - b.slope_m), 0.5 * (a.slope_s2 - b.slope_s2)};
  }
  static LossSecond half_difference(const LossSecond& a, const LossSecond& b) {
    return {0.5 * (a.mm - b.mm), 0.5 * (a.ms - b.ms), 0.5 * (a.ss - b.ss)};
  }
  static void add(double share, const LossFirst& at, LossFirst& sum) {
    sum = {sum.value + share * at.value, sum.slope_m + share * at.slope_m, sum.slope_s2 + share * at.slope_s2};
  }
  static void add(double share, const LossSecond& at, LossSecond& sum) {
    sum = {sum.mm + share * at.mm, sum.ms + share * at.ms, sum.ss + share * at.ss};
  }
  template <class Result, class Function>
  static Result mean(double m, const Function& function) {
    Result sum{0.0, 0.0, 0.0};
    for (int i = 0; i < n_nodes; ++i) add(shares[i], function(m - nodes[i]), sum);
    return sum;
  }
};

}  // namespace halosvm
HALOSVM_PUBLIC_END
