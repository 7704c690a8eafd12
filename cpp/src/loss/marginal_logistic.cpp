// The marginal logistic loss: (m, s) comes in; psi and its derivatives go out.
//
// The logistic law is a mixture of normal laws, so that P(a) = E sigma(-(a + s Z)) is one of Phi(-a / sqrt(s^2 + v)).
// Where P is small and the spread is not what makes it so, exp(-u) sigma(u) = sigma(-u) leads back to the middle:
//     P(a) = exp(s^2 / 2 - a) P(s^2 - a),   P(-a) = 1 - P(a).

#include "halosvm/loss/marginal_logistic.hpp"

#include "halosvm/core/normal.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm {
namespace {

struct Derivatives {
  LossFirst first;
  LossSecond second;
};

constexpr int n_laws = 28;
constexpr int lanes = 4;

/// v_k = exp((k - 9) / 4), and v_k / 4 times the density sum_j (-1)^(j - 1) j^2 exp(-j^2 v / 2) of the variances of the
/// logistic law: the trapezoidal rule in log v. P and its four derivatives are off by 4e-14 at most, and for a <= s^2 /
/// 2 by 2e-14 of their size.
constexpr double variances[n_laws] = {
    0.10539922456186433, 0.1353352832366127, 0.17377394345044514, 0.22313016014842982, 0.2865047968601901,
    0.36787944117144233, 0.4723665527410147, 0.6065306597126334,  0.7788007830714049,  1.0,
    1.2840254166877414,  1.6487212707001282, 2.117000016612675,   2.718281828459045,   3.4903429574618414,
    4.4816890703380645,  5.754602676005731,  7.38905609893065,    9.487735836358526,   12.182493960703473,
    15.642631884188171,  20.085536923187668, 25.790339917193062,  33.11545195869231,   42.52108200006278,
    54.598150033144236,  70.10541234668786,  90.01713130052181};
constexpr double shares[n_laws] = {
    8.292773072929739e-19,  1.787749802156689e-14,  3.895999235585901e-11,  1.4242826942529569e-08,
    1.2956386143134274e-06, 3.986285500841825e-05,  0.0005266805457471317,  0.0035977981287032635,
    0.014676554819823598,   0.03997392818377854,    0.07922212108529278,    0.12199356010633787,
    0.15329940011688942,    0.16276222979748273,    0.14912293134745241,    0.11860408930718955,
    0.08091878740613656,    0.04591865294219312,    0.02064741977432753,    0.006890984004657399,
    0.001568539568831296,   0.00021842609847651676, 1.6184374475913257e-05, 5.333860702981785e-07,
    6.211674316537756e-09,  1.9023056400435313e-11, 1.048321975718529e-14,  6.386949421078582e-19};

/// Sums over the laws of (-1)^j times the j-th derivative of P, times sqrt(2 pi) and over the density of the widest
/// law: they do not underflow.
struct Sums {
  double of[5];
};

Sums sums_over_laws(double a, double s) {
  constexpr double deepest = 600.0;  // so that no product is subnormal, which would take long
  const double square = s * s;
  const double widest = square + variances[n_laws - 1];
  double terms[5][n_laws];
  for (int k = 0; k < n_laws; ++k) {
    const double inverse = 1.0 / std::sqrt(square + variances[k]);
    const double z = a * inverse;
    const double below = 0.5 * z * z * ((variances[n_laws - 1] - variances[k]) / widest);
    const double density = shares[k] * detail::exp_minus(below < deepest ? below : deepest, 0.0);
    const detail::MillsFraction mills = detail::mills_fraction(z);
    const double slope = density * inverse;
    const double bend = slope * inverse;
    terms[0][k] = density * (mills.numerator / (mills.q + z * mills.numerator));
    terms[1][k] = slope;
    terms[2][k] = bend * z;
    terms[3][k] = bend * inverse * (z * z - 1.0);
    terms[4][k] = bend * inverse * inverse * z * (z * z - 3.0);
  }
  Sums sums{};
  for (int j = 0; j < 5; ++j) {
    double part[lanes] = {};
    for (int k = 0; k < n_laws; k += lanes) {
      for (int lane = 0; lane < lanes; ++lane) part[lane] += terms[j][k + lane];
    }
    sums.of[j] = (part[0] + part[1]) + (part[2] + part[3]);
  }
  return sums;
}

/// psi of the mixture for a >= 0.
Derivatives mixture(double a, double s) {
  constexpr double half_log_two_pi = 0.5 * log_two_pi;
  const double square = s * s;
  const Sums sums = sums_over_laws(a, s);
  const double inverse = 1.0 / sums.of[0];
  const double r1 = sums.of[1] * inverse;
  const double r2 = sums.of[2] * inverse;
  const double r3 = sums.of[3] * inverse;
  const double r4 = sums.of[4] * inverse;
  const double exponent = 0.5 * a * (a / (square + variances[n_laws - 1]));
  return {{exponent + half_log_two_pi - std::log(sums.of[0]), r1, -r2},
          {std::max(0.0, r1 * r1 - r2), s * (r3 - r1 * r2), square * (r2 * r2 - r4) - r2}};
}

/// From psi at a >= 0 to psi at -a, by P(-a) = 1 - P(a).
Derivatives mirrored(const Derivatives& there, double s) {
  const auto& [value, slope_m, slope_s2] = there.first;
  const auto& [mm, ms, ss] = there.second;
  const double odds = 1.0 / std::expm1(value);
  const double slope_s = slope_s2 * s;
  const double growth = odds * (1.0 + odds);
  return {{std::log1p(odds), odds * slope_m, -odds * slope_s2},
          {odds * (odds * slope_m * slope_m - slope_s2), odds * ms - growth * slope_m * slope_s,
           growth * slope_s * slope_s - odds * ss}};
}

/// Where the mean speaks against the label, a >= 0. With one reflection the value and its slopes have all their digits,
/// with two also second derivatives that are nearly 0.
template <int reflections>
Derivatives against(double a, double s) {
  constexpr double middle = 1.0;  // where P is not small
  const double square = s * s;
  if (a <= std::max(0.5 * square, middle)) return mixture(a, s);
  if constexpr (reflections == 0) {
    const double far = 1e3 * (1.0 + s);  // where P is 0
    return mixture(std::min(a, far), s);
  } else {
    const double b = square - a;
    const Derivatives there = b < 0.0 ? mirrored(against<reflections - 1>(-b, s), s) : mixture(b, s);
    const auto& [value, slope_m, slope_s2] = there.first;
    const auto& [mm, ms, ss] = there.second;
    return {{(a - 0.5 * square) + value, 1.0 - slope_m, slope_s2 + (2.0 * slope_m - 1.0)},
            {mm, -ms - 2.0 * s * mm, ss + 4.0 * s * (ms + s * mm) + (2.0 * slope_m - 1.0)}};
  }
}

template <int reflections>
Derivatives at(double m, double s) {
  constexpr double widest = 1e25;  // where the fractions of ratios up to s / 2 are finite
  const double width = std::min(s, widest);
  return m < 0.0 ? mirrored(against<reflections>(-m, width), width) : against<reflections>(m, width);
}

}  // namespace

LossFirst MarginalLogistic::first(double m, double s) { return at<1>(m, s).first; }

LossSecond MarginalLogistic::second(double m, double s) { return at<2>(m, s).second; }

}  // namespace halosvm
