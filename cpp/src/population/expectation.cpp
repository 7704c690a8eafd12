// The E step: chooses the engine, and adds up what its parts of the data give, in the order of the rows.

#include "population/expectation.hpp"

#include "halosvm/core/check.hpp"
#include "population/limited.hpp"
#include "population/maximisation.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace halosvm {

void Statistics::reset(Index k, Index d, Index h, bool factorised) {
  log_likelihood = 0.0;
  mass.setZero(k);
  precision.setZero(k, d);
  if (factorised) {
    pull.setZero(k, d);
    curvature.setZero(k * d, d);
    return;
  }
  shift.setZero(k, d);
  spread.setZero(k, d);
  latent.setZero(k, h);
  cross.setZero(k * d, h);
  square.setZero(k * h, h);
}

void OffsetSums::reset(const Matrix& C) {
  const Index d = C.rows();
  count = 0.0;
  root = C;
  latent.setZero(d);
  second.setZero(d, d);
  rise.setZero(d, d);
  precision.setZero(d);
  excess.setZero(d);
}

void OffsetSums::add(const OffsetSums& other) {
  count += other.count;
  latent += other.latent;
  second += other.second;
  rise += other.rise;
  precision += other.precision;
  excess += other.excess;
}

void Statistics::add(const Statistics& other) {
  log_likelihood += other.log_likelihood;
  if (offsets.root.size() > 0) offsets.add(other.offsets);
  if (other.mass.size() == 0) return;
  mass += other.mass;
  precision += other.precision;
  if (pull.size() > 0) {
    pull += other.pull;
    curvature += other.curvature;
    return;
  }
  shift += other.shift;
  spread += other.spread;
  latent += other.latent;
  cross += other.cross;
  square += other.square;
}

void Statistics::place(Index first, const Statistics& part) {
  log_likelihood += part.log_likelihood;
  const Index k = part.mass.size();
  const auto rows = [k, first](Matrix& whole, const Matrix& of_part) {
    const Index each = of_part.rows() / k;
    whole.middleRows(first * each, of_part.rows()) = of_part;
  };
  mass.segment(first, k) = part.mass;
  rows(precision, part.precision);
  if (pull.size() > 0) {
    rows(pull, part.pull);
    rows(curvature, part.curvature);
    return;
  }
  rows(shift, part.shift);
  rows(spread, part.spread);
  rows(latent, part.latent);
  rows(cross, part.cross);
  rows(square, part.square);
}

namespace population {

void Failure::raise() const {
  if (component < 0) {
    check::fail("X", "row " + std::to_string(row) +
                         " lies so far from the population that its density is 0; check its values and its errors");
  }
  check::fail("reg_covar", "is too small: component " + std::to_string(component) +
                               " of the population has no spread in a direction in which row " + std::to_string(row) +
                               " of X has no error, so that the likelihood has no maximum; increase reg_covar, or use "
                               "fewer components");
}

Vector log_weights(const Population& population) {
  Vector out(population.n_components());
  for (Index k = 0; k < out.size(); ++k) {
    out(k) = population.weights(k) > 0.0 ? std::log(population.weights(k)) : -infinity;
  }
  return out;
}

namespace {

/// Turns a row of joint log densities into responsibilities; returns their logarithm summed, -infinity if none is
/// finite.
double normalise(VectorRef joint) {
  const double largest = joint.maxCoeff();
  if (!(largest > -infinity)) return -infinity;
  double sum = 0.0;
  for (Index k = 0; k < joint.size(); ++k) {
    joint(k) = std::exp(joint(k) - largest);
    sum += joint(k);
  }
  joint /= sum;
  return largest + std::log(sum);
}

/// Adds what the rows with limits give; for \p latent in the sums of that engine.
void add_limited(const Population& population, const Measurements::Prepared& data, const Request& request, bool latent,
                 Expectation& out, const Execution& execution) {
  std::vector<Expectation> parts;
  expect_limited(population, data, request, parts, execution);
  Statistics sums;
  const Index k = population.n_components();
  if (request.statistics) sums.reset(k, population.n_features(), population.n_factors(), true);
  for (const Expectation& part : parts) {
    out.failure.merge(part.failure);
    sums.add(part.sums);
  }
  out.sums.add(latent && request.statistics ? latent_sums(population, sums) : sums);
}

}  // namespace

bool weigh(const Measurements::Prepared& data, const Request& request, const Rows& places, MatrixRef joint,
           Expectation& out) {
  const Index k = joint.cols();
  for (Index i = 0; i < places.count; ++i) {
    const auto at = static_cast<std::size_t>(places[i]);
    const Index row = data.rows[at];
    VectorMap of_row(joint.row(i).data(), k);
    const double density = normalise(of_row);
    if (!(density > -infinity) && request.log_density == nullptr) {
      out.failure.merge({row, -1});
      return false;
    }
    out.sums.log_likelihood += data.weights[at] * density;
    if (request.log_density != nullptr) request.log_density[row] = density;
    if (request.responsibilities != nullptr) VectorMap(request.responsibilities + row * k, k) = of_row;
    of_row *= data.weights[at];
  }
  return true;
}

void expect(const Population& population, const Measurements::Prepared& data, const Request& request, Expectation& out,
            const Execution& execution) {
  check::same_size("X", data.n_features(), "the population", population.n_features(), "features");
  std::vector<Expectation> parts;
  const bool latent = is_latent(population, data);
  if (latent) {
    expect_latent(population, data, request, parts, execution);
  } else if (data.shared) {
    expect_cells(population, data, request, parts, execution);
  } else {
    expect_lanes(population, data, request, parts, execution);
  }
  out = Expectation{};
  if (request.statistics) {
    out.sums.reset(population.n_components(), population.n_features(), population.n_factors(), !latent);
  }
  for (const Expectation& part : parts) {
    out.failure.merge(part.failure);
    out.sums.add(part.sums);
  }
  if (data.n_limited() > 0) add_limited(population, data, request, latent, out, execution);
}

void expect(const Population& population, const std::vector<const Measurements::Prepared*>& classes, Expectation& out,
            const Execution& execution) {
  Request request;
  request.statistics = true;
  if (classes.size() == 1) {
    expect(population, *classes[0], request, out, execution);
    return;
  }
  const bool latent = is_latent(population, *classes[0]);
  Expectation part;
  Expectation whole;
  whole.sums.reset(population.n_components(), population.n_features(), population.n_factors(), !latent);
  auto first = population.classes.begin();
  for (const Measurements::Prepared* data : classes) {
    const auto last = std::upper_bound(first, population.classes.end(), *first);
    const Index at = first - population.classes.begin();
    expect(population.components(at, last - first), *data, request, part, execution);
    if (part.failure.component >= 0) part.failure.component += at;
    whole.failure.merge(part.failure);
    if (whole.failure.any()) break;
    whole.sums.place(at, part.sums);
    first = last;
  }
  out = std::move(whole);
}

}  // namespace population
}  // namespace halosvm
