// Truncated normal law: two limits in units of the standard deviation enter, mass and moments leave.

#include "population/truncated.hpp"

#include "halosvm/core/normal.hpp"

#include <array>
#include <cmath>

namespace halosvm::population {
namespace {

/// Nodes above 0 and weights of the rule of Gauss and Legendre on [-1, 1].
struct Node {
  double place;
  double weight;
};
constexpr std::array<Node, 12> rule{{
    {0.064056892862605626085, 0.12793819534675215697},
    {0.19111886747361630916, 0.12583745634682829612},
    {0.31504267969616337439, 0.1216704729278033912},
    {0.43379350762604513849, 0.11550566805372560135},
    {0.54542147138883953566, 0.10744427011596563478},
    {0.64809365193697556925, 0.09761865210411388827},
    {0.74012419157855436424, 0.086190161531953275917},
    {0.82000198597390292195, 0.073346481411080305734},
    {0.88641552700440103421, 0.059298584915436780746},
    {0.93827455200273275852, 0.044277438817419806169},
    {0.9747285559713094982, 0.028531388628933663181},
    {0.99518721999702136018, 0.012341229799987199547},
}};

/// Where the density falls by less than exp of this over the interval, the rule is exact to rounding; where it falls by
/// more, differences of tails lose next to nothing.
constexpr double smooth = 12.5;

constexpr double half_log_two_pi = 0.5 * log_two_pi;

/// Integrals over e from 0 to infinity of exp(-t e - e^2 / 2) e^p, t >= 0.
struct Tail {
  double mass;    ///< p = 0, Mills' ratio
  double first;   ///< p = 1, mass times the mean of e
  double second;  ///< p = 2
  double excess;  ///< mean of e
  double spread;  ///< variance of e
};

Tail tail(double t) {
  constexpr double end_of_fit = 40.0;
  // a_k = k / (t + a_(k+1)), from a fit or, farther out, from where it begins no longer to matter.
  double a2 = 0.0;
  if (t <= end_of_fit) {
    const detail::MillsFraction fraction = detail::mills_fraction(t);
    a2 = fraction.p / fraction.q;
  } else {
    for (int k = 9; k > 1; --k) a2 = k / (t + a2);
  }
  const double a1 = 1.0 / (t + a2);
  const double mass = 1.0 / (t + a1);
  return {mass, mass * a1, mass * a1 * a2, a1, a1 * (a2 - a1)};
}

/// By the rule on [from + begin, from + begin + width], where z^2 / 2 changes little; moments are taken about \p from.
Truncated by_rule(double from, double begin, double width) {
  std::array<double, 2 * rule.size()> places{};
  std::array<double, 2 * rule.size()> masses{};
  double mass = 0.0;
  double first = 0.0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Node& node = rule[i / 2];
    const double e = begin + 0.5 * width * (1.0 + (i % 2 == 0 ? node.place : -node.place));
    places[i] = e;
    masses[i] = 0.5 * width * node.weight * std::exp(-e * (from + 0.5 * e));
    mass += masses[i];
    first += masses[i] * e;
  }
  const double mean = first / mass;
  double variance = 0.0;
  for (std::size_t i = 0; i < places.size(); ++i) variance += masses[i] * (places[i] - mean) * (places[i] - mean);
  variance /= mass;
  return {std::log(mass) - 0.5 * from * from - half_log_two_pi, from + mean, variance, 1.0 - variance};
}

/// 0 <= lower.
Truncated beyond_the_mean(double lower, double upper, double width) {
  const Tail near = tail(lower);
  const double log_density = -0.5 * lower * lower - half_log_two_pi;
  if (std::isinf(upper)) {
    return {log_density + std::log(near.mass), lower + near.excess, near.spread, 1.0 - near.spread};
  }
  const double fall = width * (lower + 0.5 * width);
  if (fall <= smooth) return by_rule(lower, 0.0, width);
  const Tail far = tail(upper);
  const double part = std::exp(-fall);
  const double mass = near.mass - part * far.mass;
  const double first = near.first - part * (far.first + width * far.mass);
  const double second = near.second - part * (far.second + width * (2.0 * far.first + width * far.mass));
  const double excess = first / mass;
  const double variance = second / mass - excess * excess;
  return {log_density + std::log(mass), lower + excess, variance, 1.0 - variance};
}

/// lower < 0 < upper.
Truncated about_the_mean(double lower, double upper, double width) {
  if (width <= 5.0) return by_rule(0.0, lower, width);
  const NormalTail left = normal_tail(-lower);
  const NormalTail right = normal_tail(upper);
  const double outside = left.upper + right.upper;
  const double mass = 1.0 - outside;
  const double mean = (left.density - right.density) / mass;
  const auto weighted = [](double z, double density) { return density > 0.0 ? z * density : 0.0; };
  const double lost = (weighted(-lower, left.density) + weighted(upper, right.density)) / mass + mean * mean;
  return {std::log1p(-outside), mean, 1.0 - lost, lost};
}

}  // namespace

Truncated truncated_normal(double lower, double upper, double width) {
  if (lower < 0.0 && upper > 0.0) return about_the_mean(lower, upper, width);
  if (lower >= 0.0) return beyond_the_mean(lower, upper, width);
  Truncated out = beyond_the_mean(-upper, -lower, width);
  out.mean = -out.mean;
  return out;
}

}  // namespace halosvm::population
