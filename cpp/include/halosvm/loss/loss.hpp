/// \file
/// Losses: scalar functions psi(m, s) of the margin deficit m and the spread s of one example.
///
/// A loss is a small struct with two scalar functions, `first` and `second`; \ref BlockLoss turns it into loops over
/// blocks. A new loss is one header in loss/ and one line in the table of loss.cpp.
#pragma once

#include "halosvm/core/types.hpp"

#include <memory>
#include <string>
#include <vector>

namespace halosvm {

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
  const char* majorant = nullptr;  ///< of psi(m, s) = h(m - s) the convex loss h, blind to s; else null: psi grows in s

  /// Whether J is convex: psi is, and does not fall in s.
  bool convex() const { return majorant == nullptr; }
};

/// Value and first derivatives at one (m, s).
struct LossFirst {
  double value;     ///< psi(m, s)
  double slope_m;   ///< d psi / d m
  double slope_s2;  ///< (d psi / d s) / s, the factor of Sigma w in the gradient
};

/// Second derivatives at one (m, s).
struct LossSecond {
  double mm;
  double ms;
  double ss;
};

/// Spreads below this count as 0: the density over the spread would overflow.
inline constexpr double smallest_spread = 1e-300;

/// A loss over blocks of examples; all arrays have length \p count, outputs do not overlap inputs.
class Loss {
 public:
  virtual ~Loss() = default;

  virtual const char* name() const = 0;
  virtual const LossTraits& traits() const = 0;
  bool uses_spread() const { return traits().uses_spread; }
  virtual void first(Index count, const double* m, const double* s, double* value, double* slope_m,
                     double* slope_s2) const = 0;
  virtual void second(Index count, const double* m, const double* s, double* mm, double* ms, double* ss) const = 0;
};

/// The loops, once for all losses. \tparam Scalar has `name`, `traits`, `first(m, s)` and `second(m, s)`.
template <class Scalar>
class BlockLoss final : public Loss {
 public:
  const char* name() const override { return Scalar::name; }
  const LossTraits& traits() const override { return Scalar::traits; }

  void first(Index count, const double* __restrict m, const double* __restrict s, double* __restrict value,
             double* __restrict slope_m, double* __restrict slope_s2) const override {
    for (Index i = 0; i < count; ++i) {
      const LossFirst at = Scalar::first(m[i], s[i]);
      value[i] = at.value;
      slope_m[i] = at.slope_m;
      slope_s2[i] = at.slope_s2;
    }
  }

  void second(Index count, const double* __restrict m, const double* __restrict s, double* __restrict mm,
              double* __restrict ms, double* __restrict ss) const override {
    for (Index i = 0; i < count; ++i) {
      const LossSecond at = Scalar::second(m[i], s[i]);
      mm[i] = at.mm;
      ms[i] = at.ms;
      ss[i] = at.ss;
    }
  }
};

/// Names of all losses, in the order of the table.
std::vector<std::string> loss_names();

/// The loss that is smooth where s > 0 and this one at s = 0.
std::shared_ptr<const Loss> smoothed_loss(std::shared_ptr<const Loss> loss);

/// The loss of that name. \throws std::invalid_argument that lists the names when there is none.
std::shared_ptr<const Loss> make_loss(const std::string& name);

}  // namespace halosvm
