#include "halosvm/gaussians/subspace.hpp"
#include "oracle/covariance_batches.hpp"
#include "oracle/dense_algebra.hpp"
#include "oracle/errors.hpp"
#include "oracle/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

using halosvm::ArrayView;
using halosvm::Execution;
using halosvm::FullCovariances;
using halosvm::Index;
using halosvm::kept_rank;
using halosvm::Matrix;
using halosvm::SubspaceFactors;
using halosvm::truncate;
using halosvm::truncate_diagonal;
using halosvm::Vector;
using oracle::error_of;
using oracle::largest_difference;

namespace {

using Spectrum = std::function<double(Index)>;

Matrix random_orthogonal(Index d, std::uint64_t seed) {
  oracle::Random random(seed);
  return oracle::random_orthogonal(d, random);
}

/// A matrix with eigenvalues spectrum(j) and the eigenvectors Q.col(j).
Matrix with_spectrum(const Matrix& Q, const Spectrum& spectrum) {
  const Index d = Q.rows();
  Matrix eigenvalues = Matrix::Zero(d, d);
  for (Index j = 0; j < d; ++j) eigenvalues(j, j) = spectrum(j);
  Matrix S = oracle::congruent(Q, eigenvalues);
  for (Index i = 0; i < d; ++i) {
    for (Index j = 0; j < i; ++j) S(i, j) = S(j, i) = 0.5 * (S(i, j) + S(j, i));
  }
  return S;
}

/// The part of it that its \p rank largest eigenvalues make.
Matrix leading_part(const Matrix& Q, const Spectrum& spectrum, Index rank) {
  std::vector<Index> order(static_cast<std::size_t>(Q.rows()));
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(), [&](Index i, Index j) { return spectrum(i) > spectrum(j); });
  Matrix F(Q.rows(), rank);
  for (Index k = 0; k < rank; ++k) {
    const Index j = order[static_cast<std::size_t>(k)];
    F.col(k) = std::sqrt(spectrum(j)) * Q.col(j);
  }
  return oracle::product(F, F.transpose());
}

/// F F' of each example.
std::vector<Matrix> matrices_of(const SubspaceFactors& factors, Index d) {
  const auto& offsets = factors.offsets();
  std::vector<double> numbers(static_cast<std::size_t>(d * offsets.back() + 1));
  factors.write(numbers.data());
  std::vector<Matrix> out;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const halosvm::ConstMatrixMap F(numbers.data() + d * offsets[i], d, offsets[i + 1] - offsets[i]);
    out.push_back(oracle::product(F, F.transpose()));
  }
  return out;
}

Matrix truncated(const Matrix& S, double p, const Execution& execution = {}) {
  return matrices_of(truncate(FullCovariances(ArrayView(S.data(), S.rows(), S.cols()), 1), p, execution), S.rows())[0];
}

Index rank_kept(const Matrix& S, double p) {
  return truncate(FullCovariances(ArrayView(S.data(), S.rows(), S.cols()), 1), p, {}).offsets().back();
}

}  // namespace

TEST_CASE("the kept rank is the least whose sum reaches the fraction, with what is tied") {
  Vector values(6);
  values << 4.0, 2.0, 2.0, 1.0, 1.0, 0.0;
  CHECK(kept_rank(values, 10.0, 0.1) == 1);
  CHECK(kept_rank(values, 10.0, 0.4) == 1);     // met exactly
  CHECK(kept_rank(values, 10.0, 0.4001) == 3);  // one of two that are tied
  CHECK(kept_rank(values, 10.0, 0.8) == 3);
  CHECK(kept_rank(values, 10.0, 0.81) == 5);
  CHECK(kept_rank(values, 10.0, 1.0) == 5);
  values(1) = 2.0 * (1.0 + 1e-11);  // tied but for rounding
  CHECK(kept_rank(values, 10.0, 0.5) == 3);
  values(1) = 2.0 * (1.0 + 1e-9);
  CHECK(kept_rank(values, 10.0, 0.5) == 2);
  CHECK(kept_rank(Vector::Zero(3), 0.0, 0.5) == 0);
  CHECK(kept_rank(Vector::Zero(3), 0.0, 1.0) == 0);
  CHECK(kept_rank(Vector(), 0.0, 1.0) == 0);
}

TEST_CASE("every way to find the eigenvectors finds those of which the matrix was made") {
  const std::vector<Spectrum> spectra{
      [](Index j) { return std::pow(0.9, j); },
      [](Index j) { return std::pow(0.5, j); },
      [](Index j) { return std::pow(1.0 + static_cast<double>(j), -1.5); },
      [](Index j) { return j < 12 ? 20.0 + static_cast<double>(j) : 0.01; },
      [](Index j) { return 1.0 + 0.5 * std::cos(static_cast<double>(j)); },
      [](Index j) { return static_cast<double>(1 + j / 30); },  // clusters of 30
      [](Index j) { return 1.0 + 1e-13 * static_cast<double>(j); },
      [](Index j) { return j < 40 ? 1.0 + 1e-7 * static_cast<double>(j) : 1e-3; },
      [](Index j) { return j == 5 ? 1.0 : 0.0; },
  };
  for (const Index d : {3, 47, 48, 149, 150, 220}) {  // the sizes at which another way begins
    const Matrix Q = random_orthogonal(d, 7);
    for (std::size_t k = 0; k < spectra.size(); ++k) {
      CAPTURE(d);
      CAPTURE(k);
      const Matrix S = with_spectrum(Q, spectra[k]);
      Vector sorted(d);
      for (Index j = 0; j < d; ++j) sorted(j) = spectra[k](j);
      std::sort(sorted.data(), sorted.data() + d, std::greater<>());
      const double largest = sorted(0);
      for (double& value : sorted) value = value > static_cast<double>(d) * 2.3e-16 * largest ? value : 0.0;
      for (const double p : {0.3, 0.9, 1.0}) {
        CAPTURE(p);
        const Index rank = rank_kept(S, p);
        CHECK(rank == kept_rank(sorted, sorted.sum(), p));
        // Rounding, or the residual of a part, turns eigenvectors by its ratio to the gap at the cut.
        const double gap = rank > 0 && rank < d ? (sorted(rank - 1) - sorted(rank)) / largest : 1.0;
        const double tolerance = (d < 150 ? 2e-15 * static_cast<double>(d) : 1e-10) / gap;
        const Matrix part = truncated(S, p);
        CHECK(largest_difference(part, leading_part(Q, spectra[k], rank)) <= tolerance * largest);
        CHECK(part.trace() >= p * S.trace() * (1.0 - 1e-10));
      }
    }
  }
}

TEST_CASE("many copies of one eigenvalue are all found") {
  const Matrix Q = random_orthogonal(200, 3);
  for (const Index copies : {7, 8, 9, 30}) {  // as many as a block has columns, and more
    CAPTURE(copies);
    const Spectrum spectrum = [&](Index j) { return j < copies ? 5.0 : 0.1 * std::pow(0.8, j - copies); };
    const Matrix S = with_spectrum(Q, spectrum);
    CHECK(rank_kept(S, 0.6) == copies);
    CHECK(largest_difference(truncated(S, 0.6), leading_part(Q, spectrum, copies)) < 1e-9);
  }
}

TEST_CASE("at p = 1 every kind that can be truncated is reproduced, in float64 and float32") {
  for (const oracle::Batch& batch : oracle::all_batches(7, 5, 11)) {
    CAPTURE(batch.name);
    const std::string kind = batch.covariances->kind();
    if (kind != "full" && kind != "low_rank") {
      CHECK(error_of([&] { truncate(*batch.covariances, 1.0, {}); }) ==
            "covariances are " + kind + ", expected full or low_rank");
      continue;
    }
    const auto got = matrices_of(truncate(*batch.covariances, 1.0, {}), 5);
    REQUIRE(got.size() == 7);
    const bool single = batch.name.find("float32") != std::string::npos;
    for (std::size_t i = 0; i < 7; ++i) {
      Matrix whole = batch.dense[i];
      if (batch.name.find("diagonal") != std::string::npos) {  // which is not in the factors
        Matrix without = got[i];
        whole.diagonal() = without.diagonal();
      }
      CHECK(largest_difference(got[i], whole) < (single && kind == "full" ? 2e-5 : 1e-12));
    }
  }
}

TEST_CASE("factors that are written in float32 are the rounded ones") {
  const Matrix S = with_spectrum(random_orthogonal(6, 4), [](Index j) { return 1.0 / (1.0 + static_cast<double>(j)); });
  const SubspaceFactors factors = truncate(FullCovariances(ArrayView(S.data(), 6, 6), 1), 0.8, {});
  const auto size = static_cast<std::size_t>(6 * factors.offsets().back());
  std::vector<double> exact(size);
  std::vector<float> rounded(size);
  factors.write(exact.data());
  factors.write(rounded.data());
  for (std::size_t i = 0; i < size; ++i) CHECK(rounded[i] == static_cast<float>(exact[i]));
}

TEST_CASE("the number of threads changes nothing") {
  constexpr Index n = 9;
  constexpr Index d = 160;
  const Matrix Q = random_orthogonal(d, 20);
  Matrix all(n * d, d);
  for (Index i = 0; i < n; ++i) {
    const double rate = 0.5 + 0.05 * static_cast<double>(i);
    all.middleRows(i * d, d) = with_spectrum(Q, [&](Index j) { return std::pow(rate, j); });
  }
  const FullCovariances covariances(ArrayView(all.data(), n * d, d), n);
  const SubspaceFactors one = truncate(covariances, 0.9, {1, {}});
  for (const int n_threads : {2, 5}) {
    const SubspaceFactors many = truncate(covariances, 0.9, {n_threads, {}});
    CHECK(many.offsets() == one.offsets());
    const auto a = matrices_of(one, d);
    const auto b = matrices_of(many, d);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == b[i]);
  }
}

TEST_CASE("a long call can be stopped") {
  const Matrix all =
      with_spectrum(random_orthogonal(200, 5), [](Index j) { return 1.0 + static_cast<double>(j); }).replicate(40, 1);
  const FullCovariances covariances(ArrayView(all.data(), 8000, 200), 40);
  CHECK_THROWS_AS(truncate(covariances, 0.9, {1, [] { return false; }}), halosvm::Stopped);
}

TEST_CASE("diagonals keep the largest variances and those tied with them") {
  const std::vector<double> variances{1.0, 4.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0};
  const halosvm::DiagonalCovariances covariances(ArrayView(variances.data(), 2, 4));
  std::vector<std::uint8_t> kept(8, 7);
  truncate_diagonal(covariances, 0.5, kept.data(), {});
  CHECK(kept == std::vector<std::uint8_t>{0, 1, 1, 1, 0, 0, 0, 0});
  truncate_diagonal(covariances, 0.4, kept.data(), {});
  CHECK(kept == std::vector<std::uint8_t>{0, 1, 0, 0, 0, 0, 0, 0});
  truncate_diagonal(covariances, 1.0, kept.data(), {});
  CHECK(kept == std::vector<std::uint8_t>{1, 1, 1, 1, 0, 0, 0, 0});
  const std::vector<float> stds{3.0F, 1.0F, 2.0F};
  truncate_diagonal(halosvm::DiagonalCovariances(ArrayView(stds.data(), 1, 3, true)), 0.7, kept.data(), {});
  CHECK(kept[0] == 1);
  CHECK(kept[1] == 0);
  CHECK(kept[2] == 1);
}

TEST_CASE("fractions outside of (0, 1] and other kinds are named") {
  const Matrix S = Matrix::Identity(2, 2);
  const FullCovariances full(ArrayView(S.data(), 2, 2), 1);
  std::uint8_t kept[2] = {};
  for (const double p : {0.0, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(error_of([&] { truncate(full, p, {}); }).find("p must be above 0 and at most 1, got ") == 0);
    CHECK(error_of([&] { truncate_diagonal(full, p, kept, {}); }).find("p must be above 0") == 0);
  }
  CHECK(error_of([&] { truncate_diagonal(full, 0.5, kept, {}); }) == "covariances are full, expected diagonal");
}
