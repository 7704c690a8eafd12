// A walk's weights, average and centre: steps that change all columns alike change a few factors, and columns of their
// own one by one.

#include "halosvm/solver/iterates.hpp"

#include "halosvm/core/check.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halosvm {
namespace {

// The places of m in a row of factors.
constexpr Index weight_of_centre = 0;
constexpr Index weight_of_weight = 1;
constexpr Index average_of_centre = 2;
constexpr Index average_of_weight = 3;
constexpr Index average_of_average = 4;
constexpr Index n_factors = 5;

}  // namespace

Iterates::Iterates(Matrix weights, Vector features_centre)
    : coef(std::move(weights)),
      average(Matrix::Zero(coef.rows(), coef.cols())),
      centre(std::move(features_centre)),
      factors(Matrix::Zero(coef.rows(), n_factors)),
      along_centre(coef.rows()),
      square(coef.rows()) {
  check::same_size("centre", centre.size(), "weights", coef.cols(), "features");
  factors.col(weight_of_weight).setOnes();
  factors.col(average_of_average).setOnes();
  measure();
}

void Iterates::measure() {
  centre_square = centre.squaredNorm();
  along_centre.noalias() = coef * centre;
  square = coef.rowwise().squaredNorm();
}

void Iterates::settle() {
  if (changed == 0) return;
  changed = 0;
  for (Index k = 0; k < coef.rows(); ++k) {
    const auto m = factors.row(k);
    average.row(k) = m(average_of_centre) * centre.transpose() + m(average_of_weight) * coef.row(k) +
                     m(average_of_average) * average.row(k);
    coef.row(k) = m(weight_of_centre) * centre.transpose() + m(weight_of_weight) * coef.row(k);
  }
  centre *= scale;
  scale = 1.0;
  factors.setZero();
  factors.col(weight_of_weight).setOnes();
  factors.col(average_of_average).setOnes();
  measure();
}

/// Counts the changes of a list of columns, and says whether they are to be made in settled arrays: others divide by
/// factors, which must be neither small nor large, and sums that are only updated are to be made anew once that adds
/// little to the cost of the changes.
bool Iterates::must_settle(const Support& support, double least, double largest) {
  constexpr double bound = 64.0;
  constexpr Index vectors = 4;
  changed += 1 + static_cast<Index>(support.columns().size());
  return changed > vectors * centre.size() || !(least > 1.0 / bound) || !(largest < bound);
}

const Matrix& Iterates::weights(const Support& support, Matrix& memory) {
  if (support.all()) {
    settle();
    return coef;
  }
  for (Index k = 0; k < coef.rows(); ++k) {
    const auto m = factors.row(k);
    for (const Index j : support.columns()) {
      memory(k, j) = m(weight_of_centre) * centre(j) + m(weight_of_weight) * coef(k, j);
    }
  }
  return memory;
}

double Iterates::move_centre(const Support& support, const ConstVectorRef& x, double share) {
  const double kept = 1.0 - share;
  if (support.all() || must_settle(support, scale * kept, 1.0)) {
    settle();
    const double distance = (x - centre).squaredNorm();
    if (share == 0.0) return distance;
    centre += share * (x - centre);
    centre_square = centre.squaredNorm();
    along_centre.noalias() = coef * centre;
    return distance;
  }
  double inside = 0.0;  // sums over these columns: |c|^2, |x - c|^2, x'c and |x|^2
  double distance = 0.0;
  double along = 0.0;
  double size = 0.0;
  for (const Index j : support.columns()) {
    const double c = scale * centre(j);
    inside += c * c;
    distance += (x(j) - c) * (x(j) - c);
    along += x(j) * c;
    size += x(j) * x(j);
  }
  distance += std::max(0.0, centre_square - inside);
  if (share == 0.0) return distance;

  scale *= kept;
  centre_square = std::max(0.0, kept * kept * centre_square + share * (2.0 * kept * along + share * size));
  for (Index k = 0; k < coef.rows(); ++k) {
    const auto m = factors.row(k);
    double score = 0.0;
    for (const Index j : support.columns()) {
      const double moved = share * x(j) / scale;
      score += x(j) * (m(weight_of_centre) * centre(j) + m(weight_of_weight) * coef(k, j));
      // So that weights and averages stay.
      const double change = -m(weight_of_centre) * moved / m(weight_of_weight);
      coef(k, j) += change;
      average(k, j) -= (m(average_of_centre) * moved + m(average_of_weight) * change) / m(average_of_average);
    }
    along_centre(k) = kept * along_centre(k) + share * score;
  }
  for (const Index j : support.columns()) centre(j) += share * x(j) / scale;
  return distance;
}

void Iterates::advance(const Support& support, const GradientStep& step, const ConstMatrixRef& gradient) {
  const auto due = [&] {
    const auto m = factors.array();
    const double least = std::min({scale, (m.col(weight_of_weight) * step.kept.array()).abs().minCoeff(),
                                   m.col(average_of_average).minCoeff() * (1.0 - step.share)});
    return must_settle(support, least, factors.cwiseAbs().maxCoeff());
  };
  if (support.all() || due()) {
    settle();
    for (Index k = 0; k < coef.rows(); ++k) {
      auto w = coef.row(k);
      w = step.kept(k) * w + step.centred(k) * centre.transpose() - step.rate * gradient.row(k);
      square(k) = w.squaredNorm();
      if (square(k) > step.radius * step.radius) {
        w *= step.radius / std::sqrt(square(k));
        square(k) = step.radius * step.radius;
      }
      along_centre(k) = w.dot(centre);
      if (step.share > 0.0) average.row(k) += step.share * (w - average.row(k));
    }
    return;
  }
  for (Index k = 0; k < coef.rows(); ++k) advance_columns(support, step, gradient, k);
}

void Iterates::advance_columns(const Support& support, const GradientStep& step, const ConstMatrixRef& gradient,
                               Index k) {
  auto m = factors.row(k);
  double kept = step.kept(k);
  double centred = step.centred(k);
  double rate = step.rate;
  double along_weights = 0.0;  // the gradient's products with the weights, with the centre and with itself
  double along = 0.0;
  double size = 0.0;
  for (const Index j : support.columns()) {
    const double g = gradient(k, j);
    along_weights += g * (m(weight_of_centre) * centre(j) + m(weight_of_weight) * coef(k, j));
    along += g * scale * centre(j);
    size += g * g;
  }
  const double turned = kept * kept * square(k) + centred * (2.0 * kept * along_centre(k) + centred * centre_square);
  square(k) = std::max(0.0, turned - rate * (2.0 * (kept * along_weights + centred * along) - rate * size));
  if (square(k) > step.radius * step.radius) {
    const double shrunk = step.radius / std::sqrt(square(k));
    kept *= shrunk;
    centred *= shrunk;
    rate *= shrunk;
    square(k) = step.radius * step.radius;
  }
  along_centre(k) = kept * along_centre(k) + centred * centre_square - rate * along;

  m(weight_of_centre) = kept * m(weight_of_centre) + centred * scale;
  m(weight_of_weight) *= kept;
  m(average_of_centre) += step.share * (m(weight_of_centre) - m(average_of_centre));
  m(average_of_weight) += step.share * (m(weight_of_weight) - m(average_of_weight));
  m(average_of_average) *= 1.0 - step.share;
  const double of_weight = rate / m(weight_of_weight);
  // The average takes its share of the change, of which the weights' column gives it some already.
  const double of_average = (step.share * rate - m(average_of_weight) * of_weight) / m(average_of_average);
  for (const Index j : support.columns()) {
    const double g = gradient(k, j);
    coef(k, j) -= of_weight * g;
    average(k, j) -= of_average * g;
  }
}

}  // namespace halosvm
