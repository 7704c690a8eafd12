/// \file
/// Losses: scalar functions psi(m, s) of the margin deficit m and the spread s of one example.
///
/// A loss is a small struct with two scalar functions, `first` and `second`; BlockLoss turns it into loops over
/// blocks. A new loss is one header in loss/ and one line in the table of loss.cpp.
#pragma once

#include "halosvm/core/types.hpp"

#include <memory>
#include <string>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// psi(m, 0) = max over theta in [0, end] of theta m - bend theta^2 / 2: what single steps in dual variables need.
struct CertainDual {
  double end = 0.0;   ///< the largest slope, or infinity; 0: psi(m, 0) is of another form
  double bend = 0.0;  ///< 1 over the curvature where the slope is between its ends
};

/// What solvers may ask of a loss; never its name.
struct LossTraits {
  bool uses_spread = false;        ///< false: psi ignores s, and covariances are never read
  bool homogeneous = false;        ///< psi(t m, t s) = t psi(m, s) for t > 0
  bool kinked = false;             ///< the slope of psi(m, 0) jumps at m = 0
  bool quantile_dual = false;      ///< psi = max over theta in [0, 1] of theta m + phi(q) s, Phi(q) = theta
  double margin = 1.0;             ///< the offset that labels have in m = margin - y f
  double steepest = infinity;      ///< a bound of psi_m, or infinity
  double sharpest = infinity;      ///< a bound of psi_mm, or infinity
  const char* smoothed = nullptr;  ///< a loss that is this one at s = 0 and smooth above, or null: psi itself is

  bool has_radius = false;         ///< s is the size of a bounded error, which a radius may multiply
  double shift = 0.0;              ///< if not 0, psi(m, s) = psi(m + shift s, 0): kinks are not at s = 0 alone
  const char* majorant = nullptr;  ///< of a psi that is not convex a convex loss that is nowhere below, with shift < 0
                                   ///< that of psi(m, s) = h(m + shift s); else null

  CertainDual certain = {};  ///< of convex losses at s = 0

  /// Whether J is convex: psi is, and does not fall in s.
  bool convex() const { return majorant == nullptr; }
  /// Whether psi = max over theta in [0, 1] of theta m + kappa(theta) s with kappa(theta) = phi(q) or theta.
  bool has_dual() const { return quantile_dual || shift > 0.0; }
  /// A bound of psi_s; psi_s <= phi(0) for duals of quantiles.
  double steepest_in_spread() const { return quantile_dual ? 0.4 : steepest; }
};

/// Value and first derivatives at one (m, s).
struct LossFirst {
  double value;     ///< psi(m, s)
  double slope_m;   ///< d psi / d m
  double slope_s2;  ///< (d psi / d s) / s, the factor of Sigma w in the gradient
};

/// Second derivatives at one (m, s).
struct LossSecond {
  double mm;  ///< d^2 psi / d m^2
  double ms;  ///< d^2 psi / d m d s
  double ss;  ///< d^2 psi / d s^2
};

/// Spreads below this count as 0: the density over the spread would overflow.
inline constexpr double smallest_spread = 1e-300;

/// A loss over blocks of examples; all arrays have length \p count, outputs do not overlap inputs.
class Loss {
 public:
  virtual ~Loss() = default;

  /// Its name in the table of losses.
  virtual const char* name() const = 0;
  /// What solvers may know of it.
  virtual const LossTraits& traits() const = 0;
  /// Whether covariances are read.
  bool uses_spread() const { return traits().uses_spread; }
  /// Values and first derivatives, as in \ref LossFirst, at each (m, s).
  virtual void first(Index count, const double* m, const double* s, double* value, double* slope_m,
                     double* slope_s2) const = 0;
  /// Second derivatives, as in \ref LossSecond, at each (m, s).
  virtual void second(Index count, const double* m, const double* s, double* mm, double* ms, double* ss) const = 0;
  /// This loss with its kinks rounded off over the width \p floor, which s is never below; null if that is another
  /// loss of the table, or this one.
  virtual std::shared_ptr<const Loss> softened(double /*floor*/) const { return nullptr; }
};

/// The loops over a block, once for all losses. \p at is a function of (m, s).
template <class First>
void first_of_block(Index count, const double* __restrict m, const double* __restrict s, double* __restrict value,
                    double* __restrict slope_m, double* __restrict slope_s2, const First& at) {
  for (Index i = 0; i < count; ++i) {
    const LossFirst out = at(m[i], s[i]);
    value[i] = out.value;
    slope_m[i] = out.slope_m;
    slope_s2[i] = out.slope_s2;
  }
}

/// The same for second derivatives.
template <class Second>
void second_of_block(Index count, const double* __restrict m, const double* __restrict s, double* __restrict mm,
                     double* __restrict ms, double* __restrict ss, const Second& at) {
  for (Index i = 0; i < count; ++i) {
    const LossSecond out = at(m[i], s[i]);
    mm[i] = out.mm;
    ms[i] = out.ms;
    ss[i] = out.ss;
  }
}

/// A loss without parameters. \tparam Scalar has `name`, `traits`, `first(m, s)` and `second(m, s)`.
template <class Scalar>
class BlockLoss : public Loss {
 public:
  /// That of \p Scalar.
  const char* name() const override { return Scalar::name; }
  /// Those of \p Scalar.
  const LossTraits& traits() const override { return Scalar::traits; }

  /// Values and first derivatives, a loop over those of \p Scalar.
  void first(Index count, const double* m, const double* s, double* value, double* slope_m,
             double* slope_s2) const override {
    first_of_block(count, m, s, value, slope_m, slope_s2, [](double a, double b) { return Scalar::first(a, b); });
  }

  /// Second derivatives, a loop over those of \p Scalar.
  void second(Index count, const double* m, const double* s, double* mm, double* ms, double* ss) const override {
    second_of_block(count, m, s, mm, ms, ss, [](double a, double b) { return Scalar::second(a, b); });
  }
};

/// Names of all losses, in the order of the table.
std::vector<std::string> loss_names();

/// The loss that is smooth where s >= floor > 0, and that leads back to this one as the floor vanishes.
std::shared_ptr<const Loss> smoothed_loss(std::shared_ptr<const Loss> loss, double floor);

/// The loss of that name. \throws std::invalid_argument that lists the names when there is none.
std::shared_ptr<const Loss> make_loss(const std::string& name);

}  // namespace halosvm
HALOSVM_PUBLIC_END
