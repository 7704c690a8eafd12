// The covariance of the offsets of batches: sums over batches enter, its M step, coordinates and slope leave.

#include "population/offsets.hpp"

#include "linalg/multiply.hpp"

#include <algorithm>
#include <cmath>

namespace halosvm::population {
namespace {

constexpr double least_deviation = 1e-30;  // in units of the scale: what counts as a standard deviation of 0

/// The unit of a variance that is one for all features.
double common_unit(const Vector& scale) { return std::exp(scale.array().log().mean()); }

}  // namespace

Matrix semidefinite_root(const ConstMatrixRef& W) {
  const Index d = W.rows();
  Matrix C = Matrix::Zero(d, d);
  for (Index i = 0; i < d; ++i) {
    for (Index j = 0; j < i; ++j) {
      if (C(j, j) > 0.0) C(i, j) = (W(i, j) - C.row(i).head(j).dot(C.row(j).head(j))) / C(j, j);
    }
    const double pivot = W(i, i) - C.row(i).head(i).squaredNorm();
    if (pivot > singular_pivot * static_cast<double>(d) * W(i, i) && pivot > smallest_variance)
      C(i, i) = std::sqrt(pivot);
  }
  return C;
}

void update_offsets(Population& next, const OffsetSums& sums, const Prior& prior) {
  const Vector mean = sums.latent / sums.count;
  const Matrix second = sums.second / sums.count - mean * mean.transpose();
  Matrix W = linalg::product(linalg::product(sums.root, second), sums.root.transpose());
  if (prior.offset_weight > 0.0) {
    W *= sums.count;
    W.diagonal() += prior.offset_weight * prior.offset_variances;
    W /= sums.count + prior.offset_weight;
  }
  next.means.rowwise() += linalg::product<Vector>(sums.root, mean).transpose();
  if (next.offset_form == OffsetForm::full) {
    next.offsets = 0.5 * (W + W.transpose());
    return;
  }
  Vector variances = W.diagonal().cwiseMax(0.0);
  if (next.offset_form == OffsetForm::isotropic) variances.setConstant(variances.mean());
  next.offsets = variances.asDiagonal();
}

double log_offset_prior(const Population& population, const Prior& prior) {
  if (!(prior.offset_weight > 0.0) || population.offsets.size() == 0) return 0.0;
  Matrix L = population.offsets;
  if (!cholesky(L)) return -infinity;
  const double volume = log_determinant(L) - prior.offset_variances.array().log().sum();
  invert_lower(L);
  const double trace = (L.cwiseAbs2() * prior.offset_variances.asDiagonal()).sum();
  return -0.5 * prior.offset_weight * (trace + volume);
}

void append_offset_coordinates(const Population& population, const Vector& scale, std::vector<double>& out) {
  if (population.offsets.size() == 0) return;
  const Matrix C = semidefinite_root(population.offsets);
  const auto deviation = [](double value, double unit) { return std::max(value / unit, least_deviation); };
  if (population.offset_form == OffsetForm::isotropic) {
    out.push_back(deviation(C(0, 0), common_unit(scale)));
    return;
  }
  for (Index i = 0; i < C.rows(); ++i) {
    for (Index j = 0; j < i && population.offset_form == OffsetForm::full; ++j) out.push_back(C(i, j) / scale(i));
    out.push_back(deviation(C(i, i), scale(i)));
  }
}

void append_offset_slope(const Population& population, const OffsetSums& sums, const Prior& prior, const Vector& scale,
                         Slope& out) {
  if (population.offsets.size() == 0) return;
  std::vector<double> rise;
  std::vector<double> curvature;
  constexpr double least = 1e-8;
  const auto add = [&](double slope, double second) {
    rise.push_back(slope);
    curvature.push_back(std::max(second, least * sums.count));
  };
  Matrix slope = sums.rise;
  Vector of_prior = Vector::Zero(scale.size());  // second derivatives by standard deviations
  if (prior.offset_weight > 0.0) {
    // d/dW is half of W^-1 D W^-1 - W^-1, for each batch.
    Matrix inverse = sums.root;
    invert_lower(inverse);
    const Matrix spread = inverse * prior.offset_variances.asDiagonal();
    Matrix scatter = linalg::product(spread, inverse.transpose());
    scatter.diagonal().array() -= 1.0;
    linalg::add_product(inverse.transpose(), scatter, slope, prior.offset_weight);
    of_prior =
        3.0 * prior.offset_weight * prior.offset_variances.cwiseQuotient(sums.root.diagonal().array().pow(4).matrix());
    of_prior = of_prior.cwiseProduct(scale.cwiseAbs2()).eval();
  }
  const Vector precision = sums.precision.cwiseProduct(scale.cwiseAbs2());
  const Vector pressed = sums.excess.cwiseAbs().cwiseProduct(scale.cwiseAbs2());
  // How much of what batches tell of their offset, on the way of each column, is W.
  const Matrix squares = (scale.cwiseInverse().asDiagonal() * sums.root).cwiseAbs2();
  const Vector part = (linalg::product<Vector>(squares.transpose(), precision) / sums.count).cwiseMin(1.0);
  if (population.offset_form == OffsetForm::isotropic) {
    const double unit = common_unit(scale);
    const Vector units = (unit * scale.cwiseInverse()).cwiseAbs2();
    add(slope.diagonal().sum() * unit, units.dot(2.0 * precision.cwiseProduct(part) + pressed + of_prior));
  } else {
    for (Index i = 0; i < scale.size(); ++i) {
      for (Index j = 0; j < i && population.offset_form == OffsetForm::full; ++j) {
        add(slope(i, j) * scale(i), precision(i) * part(j) + pressed(i));
      }
      add(slope(i, i) * scale(i), 2.0 * precision(i) * part(i) + pressed(i) + of_prior(i));
    }
  }
  const auto n = static_cast<Index>(rise.size());
  for (const auto& [values, whole] : {std::pair(&rise, &out.rise), std::pair(&curvature, &out.curvature)}) {
    whole->conservativeResize(whole->size() + n);
    whole->tail(n) = ConstVectorMap(values->data(), n);
  }
}

void read_offset_coordinates(const double* coordinates, const Vector& scale, Population& out) {
  if (out.offsets.size() == 0) return;
  const Index d = scale.size();
  Matrix C = Matrix::Zero(d, d);
  if (out.offset_form == OffsetForm::isotropic) {
    C.diagonal().setConstant(*coordinates * common_unit(scale));
  } else {
    for (Index i = 0; i < d; ++i) {
      for (Index j = 0; j < i && out.offset_form == OffsetForm::full; ++j) C(i, j) = scale(i) * *coordinates++;
      C(i, i) = scale(i) * *coordinates++;
    }
  }
  linalg::multiply(C, C.transpose(), out.offsets);
}

}  // namespace halosvm::population
