#include "halosvm/core/check.hpp"
#include "halosvm/halosvm.hpp"
#include "oracle/covariance_batches.hpp"
#include "oracle/dense_algebra.hpp"
#include "oracle/errors.hpp"
#include "oracle/no_numbers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

using halosvm::ArrayView;
using halosvm::Covariances;
using halosvm::Execution;
using halosvm::Index;
using halosvm::Matrix;
using halosvm::Rows;
using halosvm::Vector;
using oracle::all_batches;
using oracle::Batch;
using oracle::BatchMaker;
using oracle::distance;
using oracle::error_of;
using oracle::infinity;
using oracle::largest_difference;
using oracle::not_a_number;
using oracle::times;

namespace {

/// Scratch memory of exactly the size that is asked for, filled with NaN, with a guard behind it.
class Scratch {
 public:
  Scratch(const Covariances& covariances, Index rows, Index problems)
      : memory_(static_cast<std::size_t>(covariances.scratch_size({rows, problems}) + 4), not_a_number) {
    std::fill(memory_.end() - 4, memory_.end(), guard);
  }
  double* data() { return memory_.data(); }
  bool intact() const {
    return std::all_of(memory_.end() - 4, memory_.end(), [](double x) { return x == guard; });
  }

 private:
  static constexpr double guard = 4711.0;
  std::vector<double> memory_;
};

/// The differences between all operations on these rows and the dense matrices, relative to the sizes that enter.
struct Differences {
  /// NaN counts as infinite.
  static void raise(double& worst, double difference) {
    worst = std::isnan(difference) ? infinity : std::max(worst, difference);
  }

  double bilinear = 0.0;
  double square = 0.0;
  double weighted_products = 0.0;
  double products = 0.0;
  double matrices = 0.0;
  double diagonals = 0.0;
  bool intact = true;
};

Differences compare(const Batch& batch, const Rows& rows, Index problems, oracle::Random& random) {
  const Covariances& covariances = *batch.covariances;
  const Index d = covariances.n_features();
  const Matrix around = random.normal_matrix(problems + 2, d + 3);  // weights are parts of larger matrices
  const auto W = around.block(1, 2, problems, d);
  const Matrix V = random.normal_matrix(problems, d);
  const Matrix a = random.normal_matrix(problems, rows.count + 2);
  Scratch scratch(covariances, rows.count, problems);
  Matrix mixed = Matrix::Constant(problems, rows.count + 1, 9.0);
  Matrix square = Matrix::Constant(problems, rows.count, 9.0);
  Matrix sum = random.normal_matrix(problems, d);
  Matrix want_sum = sum;
  Matrix each = Matrix::Constant(rows.count, d + 1, 9.0);
  Matrix matrices = random.normal_matrix(d, d);
  Vector diagonals = random.normal_vector(d);
  Matrix want_matrices = matrices;
  Vector want_diagonals = diagonals;
  covariances.bilinear(rows, W, V, mixed.leftCols(rows.count), scratch.data());
  covariances.bilinear(rows, W, W, square, scratch.data());
  covariances.add_weighted_products(rows, a.leftCols(rows.count), W, sum, scratch.data());
  Vector kept = Vector::Constant(covariances.kept_size({rows.count, problems}) + 1, 9.0);
  Matrix kept_square = Matrix::Constant(problems, rows.count, 9.0);
  Matrix kept_sum = want_sum;
  covariances.squares(rows, W, kept_square, kept.data(), scratch.data());
  covariances.add_kept_products(rows, a.leftCols(rows.count), W, kept.data(), kept_sum, scratch.data());
  covariances.products(rows, W.row(0).transpose(), each.leftCols(d), scratch.data());
  covariances.add_weighted_matrices(rows, a.row(0).head(rows.count).transpose(), matrices, scratch.data());
  covariances.add_weighted_diagonals(rows, a.row(0).head(rows.count).transpose(), diagonals, scratch.data());

  Differences worst;
  double size = 1.0;
  for (Index i = 0; i < rows.count; ++i) {
    const Matrix& S = batch.dense[static_cast<std::size_t>(rows[i])];
    for (Index k = 0; k < problems; ++k) {
      const Vector w = W.row(k).transpose();
      const Vector v = V.row(k).transpose();
      const Vector product = times(S, w);
      const double scale = w.norm() * S.norm() + 1e-300;
      Differences::raise(worst.bilinear, std::abs(mixed(k, i) - product.dot(v)) / (scale * v.norm()));
      for (const double found : {square(k, i), kept_square(k, i)}) {
        Differences::raise(worst.square, std::abs(found - product.dot(w)) / (scale * w.norm()));
      }
      for (Index j = 0; j < d; ++j) want_sum(k, j) += a(k, i) * product(j);
      size += std::abs(a(k, i)) * scale;
      if (k > 0) continue;
      Differences::raise(worst.products, distance(each.row(i).head(d).transpose(), product) / scale);
    }
    for (Index j = 0; j < d; ++j) {
      want_diagonals(j) += a(0, i) * S(j, j);
      for (Index k = 0; k <= j; ++k) want_matrices(j, k) += a(0, i) * S(j, k);
    }
  }
  for (Index j = 0; j < d; ++j) {
    for (Index k = j + 1; k < d; ++k) matrices(j, k) = want_matrices(j, k);  // the upper triangle is free
  }
  worst.matrices = largest_difference(matrices, want_matrices) / size;
  worst.diagonals = largest_difference(diagonals, want_diagonals) / size;
  for (const Matrix& found : {sum, kept_sum}) {
    Differences::raise(worst.weighted_products, largest_difference(found, want_sum) / size);
  }
  worst.intact = scratch.intact() && kept(kept.size() - 1) == 9.0;
  for (Index k = 0; k < problems; ++k) worst.intact = worst.intact && mixed(k, rows.count) == 9.0;
  for (Index i = 0; i < rows.count; ++i) worst.intact = worst.intact && each(i, d) == 9.0;
  return worst;
}

void check_against_dense(const Batch& batch, const Rows& rows, oracle::Random& random) {
  for (const Index problems : {1, 3}) {
    CAPTURE(batch.name);
    CAPTURE(rows.count);
    CAPTURE(problems);
    const Differences worst = compare(batch, rows, problems, random);
    CHECK(worst.bilinear < 1e-14);
    CHECK(worst.square < 1e-14);
    CHECK(worst.weighted_products < 1e-14);
    CHECK(worst.products < 1e-14);
    CHECK(worst.matrices < 1e-14);
    CHECK(worst.diagonals < 1e-14);
    CHECK(worst.intact);
  }
  std::vector<Index> columns;
  if (!batch.covariances->add_support(rows, columns)) return;
  Matrix outside = Matrix::Ones(1, batch.covariances->n_features());
  for (const Index j : columns) outside(0, j) = 0.0;
  for (Index i = 0; i < rows.count; ++i) {
    CHECK(oracle::product(outside, batch.dense[static_cast<std::size_t>(rows[i])]).isZero());
  }
}

/// The factors of rows 2 ... 6 of 9 examples with 70 features.
void check_factors(const Batch& batch, oracle::Random& random) {
  CAPTURE(batch.name);
  const halosvm::Factors* factors = batch.covariances->factors();
  REQUIRE(factors != nullptr);
  CHECK(halosvm::total_rank(*factors, 9) == factors->first_column(8) + factors->rank(8));
  const Rows rows{2, 5};
  const Index first = factors->first_column(2);
  const Vector w = random.normal_vector(70);
  Vector a = random.normal_vector(5);
  a(1) = 0.0;
  Vector p = Vector::Constant(factors->first_column(7) - first, 9.0);
  Matrix each = Matrix::Constant(5, 71, 9.0);
  Vector sum = random.normal_vector(70);
  Vector want = sum;
  Scratch scratch(*batch.covariances, 5, 1);
  factors->project(rows, w, p, scratch.data());
  factors->combine(rows, p, each.leftCols(70), scratch.data());
  factors->add_combined(rows, a, p, sum, scratch.data());
  for (Index i = 0; i < 5; ++i) {
    const Vector product = times(batch.dense[static_cast<std::size_t>(rows[i])], w);
    const Vector part = p.segment(factors->first_column(rows[i]) - first, factors->rank(rows[i]));
    CHECK(part.squaredNorm() == doctest::Approx(w.dot(product)).epsilon(1e-12));
    CHECK(distance(each.row(i).head(70).transpose(), product) <= 1e-12 * product.norm());
    CHECK(each(i, 70) == 9.0);
    want += a(i) * product;
  }
  CHECK(distance(sum, want) <= 1e-12 * want.norm());
  CHECK(scratch.intact());
}

/// How many kinds say in which features their examples are uncertain.
Index with_support(const std::vector<Batch>& batches) {
  return std::count_if(batches.begin(), batches.end(), [](const Batch& batch) {
    std::vector<Index> columns;
    return batch.covariances->add_support({1, 1}, columns);
  });
}

std::string check(const Covariances& covariances, int n_threads = 1) {
  Execution execution;
  execution.n_threads = n_threads;
  return error_of([&] { covariances.check("X_cov", execution); });
}

}  // namespace

TEST_CASE("every kind and storage equals its dense matrices, for runs and lists of rows, one and three problems") {
  oracle::Random random(1);
  const Index list[] = {12, 0, 5, 5, 1};
  for (const Batch& batch : all_batches(13, 5, 10)) {
    for (const Rows& rows : {Rows{3, 7}, Rows{0, 13}, Rows{4, 1}, Rows{0, 5, list}})
      check_against_dense(batch, rows, random);
  }
  CHECK(with_support(all_batches(13, 5, 10)) > 4);
}

TEST_CASE("covariances times a factor equal their dense matrices times it") {
  oracle::Random random(3);
  const Index list[] = {12, 0, 5, 5, 1};
  for (Batch batch : all_batches(13, 5, 10)) {
    for (const double factor : {0.0, 0.3, 4.0}) {
      Batch scaled = batch;
      scaled.covariances = std::make_shared<halosvm::ScaledCovariances>(batch.covariances, factor);
      for (Matrix& S : scaled.dense) S *= factor;
      for (const Rows& rows : {Rows{0, 13}, Rows{0, 5, list}}) check_against_dense(scaled, rows, random);
    }
  }
}

TEST_CASE("every kind equals its dense matrices for one feature and for a few hundred") {
  oracle::Random random(2);
  const Index list[] = {2, 0};
  for (const Index d : {1, 2, 130}) {
    for (const Batch& batch : all_batches(3, d, 20)) {
      for (const Rows& rows : {Rows{0, 3}, Rows{0, 2, list}}) check_against_dense(batch, rows, random);
    }
  }
}

TEST_CASE_TEMPLATE("factors of any shape equal their dense matrices", T, double, float) {
  oracle::Random random(3);
  using Extra = typename BatchMaker<T>::Extra;
  struct Shape {
    Index n_features;
    Index rank;
  };
  for (const Shape& shape : {Shape{700, 9}, Shape{60, 90}, Shape{4, 4}, Shape{1, 5}}) {
    const Index d = shape.n_features;
    const Index rank = shape.rank;
    CAPTURE(d);
    CAPTURE(rank);
    check_against_dense(BatchMaker<T>(2, d, 30).low_rank(rank, Extra::none), {0, 2}, random);
    check_against_dense(BatchMaker<T>(rank + 2, d, 31).ragged(rank, Extra::stds), {0, rank + 2}, random);
  }
}

TEST_CASE_TEMPLATE("factors have the products of their covariances; other kinds have none", T, double, float) {
  oracle::Random random(4);
  using Extra = typename BatchMaker<T>::Extra;
  BatchMaker<T> maker(9, 70, 32);
  for (const Batch& batch : {maker.low_rank(2, Extra::none), maker.ragged(80, Extra::none), maker.diagonal(false),
                             maker.diagonal(true), maker.isotropic(false), maker.isotropic(true)}) {
    check_factors(batch, random);
  }
  for (const Batch& batch : {maker.low_rank(2, Extra::stds), maker.full(), maker.zero()}) {
    CHECK(batch.covariances->factors() == nullptr);
  }
}

namespace {

/// How far R R' is from S, entry by entry, in units of the features.
double error_of_root(const Covariances& covariances, Index row, const Matrix& S) {
  Matrix R;
  covariances.root(row, R);
  REQUIRE(R.rows() == S.rows());
  const Vector unit = S.diagonal().cwiseSqrt().unaryExpr([](double s) { return s > 0.0 ? s : 1.0; });
  return ((R * R.transpose() - S).array() / (unit * unit.transpose()).array()).abs().maxCoeff();
}

}  // namespace

TEST_CASE("roots of every kind, also times a factor, have the covariances as their squares") {
  for (const Batch& batch : all_batches(5, 4, 70)) {
    CAPTURE(batch.name);
    const auto scaled = halosvm::scaled_covariances(batch.covariances, 3.0);
    for (Index i = 0; i < 5; ++i) {
      const Matrix& S = batch.dense[static_cast<std::size_t>(i)];
      CHECK(error_of_root(*batch.covariances, i, S) <= 1e-6);  // some are stored as float
      CHECK(error_of_root(*scaled, i, 3.0 * S) <= 1e-6);
    }
  }
}

TEST_CASE("roots keep the digits of features that are small beside others") {
  const std::vector<double> units = {1e-6, 1.0, 1e7};
  oracle::Random random(71);
  std::vector<double> factors(6);
  std::vector<double> variances(3);
  Matrix F(3, 2);
  Vector D(3);
  for (Index j = 0; j < 3; ++j) {
    const double unit = units[static_cast<std::size_t>(j)];
    for (Index k = 0; k < 2; ++k) factors[static_cast<std::size_t>(2 * j + k)] = F(j, k) = unit * random.normal();
    variances[static_cast<std::size_t>(j)] = D(j) = j == 1 ? 0.0 : unit * unit;
  }
  const halosvm::LowRankCovariances covariances(ArrayView(factors.data(), 3, 2), 1, 3,
                                                ArrayView(variances.data(), 1, 3));
  Matrix S = F * F.transpose();
  S.diagonal() += D;
  CHECK(error_of_root(covariances, 0, S) <= 1e-14);
  Matrix R;
  covariances.root(0, R);
  // w lets the large features cancel: of matrices nothing would be left.
  Vector w(3);
  for (Index j = 0; j < 3; ++j) {
    const Index k = (j + 1) % 3;
    const Index l = (j + 2) % 3;
    w(j) = (F(k, 0) * F(l, 1) - F(l, 0) * F(k, 1)) / 1e7;
  }
  const double square = D.cwiseProduct(w.cwiseAbs2()).sum();
  CHECK((R.transpose() * w).squaredNorm() == doctest::Approx(square).epsilon(1e-9));
}

TEST_CASE("spreads in other norms have the norm's values, slopes and factors for every kind that has factors") {
  oracle::Random random(6);
  for (const Batch& batch : all_batches(9, 6, 77)) {
    CAPTURE(batch.name);
    if (!batch.covariances->certain() && batch.covariances->cancels()) {  // matrices, which have no factors
      CHECK(error_of([&] { halosvm::in_norm(batch.covariances, 1.0); }).find("norm is 1") == 0);
      continue;
    }
    CHECK(halosvm::in_norm(batch.covariances, 2.0) == batch.covariances);
    for (const double p : {1.0, 1.4, 4.0, infinity}) {
      CAPTURE(p);
      const std::shared_ptr<const Covariances> spread = halosvm::in_norm(batch.covariances, p);
      if (batch.covariances->certain()) continue;
      const double q = p == 1.0 ? infinity : std::isinf(p) ? 1.0 : p / (p - 1.0);
      CHECK(spread->spread_norm() == q);
      const halosvm::Factors& factors = *spread->factors();
      const Rows rows{2, 5};
      Scratch scratch(*spread, 5, 2);
      const Matrix W = random.normal_matrix(2, 6);
      const Matrix V = random.normal_matrix(2, 6);
      const Matrix a = random.normal_matrix(2, 5);
      Matrix square(2, 5);
      Matrix slope(2, 5);
      Matrix sum = Matrix::Zero(2, 6);
      Matrix each(5, 6);
      Vector diagonals = Vector::Zero(6);
      spread->bilinear(rows, W, W, square, scratch.data());
      spread->bilinear(rows, W, V, slope, scratch.data());
      spread->add_weighted_products(rows, a, W, sum, scratch.data());
      spread->products(rows, W.row(0).transpose(), each, scratch.data());
      spread->add_weighted_diagonals(rows, Vector::Ones(5), diagonals, scratch.data());
      Matrix want_sum = Matrix::Zero(2, 6);
      Matrix want_squares = Matrix::Zero(6, 6);
      Matrix squares = Matrix::Zero(6, 6);
      Vector largest = Vector::Zero(6);
      const Index first = factors.first_column(2);
      const Vector t = random.normal_vector(factors.first_column(6) + factors.rank(6) - first);
      factors.add_squares(rows, t, squares, scratch.data());
      for (Index i = 0; i < 5; ++i) {
        const Index r = factors.rank(rows[i]);
        Matrix F(6, r);
        Matrix column(1, 6);
        for (Index k = 0; k < r; ++k) {
          factors.combine({rows[i], 1}, Vector::Unit(r, k), column, scratch.data());
          F.col(k) = column.row(0).transpose();
        }
        CHECK(distance(oracle::product(F, F.transpose()), batch.dense[static_cast<std::size_t>(rows[i])]) <=
              1e-12 * (1.0 + F.norm()));
        const Matrix weights = t.segment(factors.first_column(rows[i]) - first, r).asDiagonal();
        want_squares += oracle::congruent(F, weights);
        const auto size = [&](const Vector& w) {
          double sum_of_powers = 0.0;
          double most = 0.0;
          for (const double u : times(F.transpose(), w)) {
            sum_of_powers += std::pow(std::abs(u), q);
            most = std::max(most, std::abs(u));
          }
          return std::isinf(q) ? most : std::pow(sum_of_powers, 1.0 / q);
        };
        for (Index j = 0; j < 6; ++j) largest(j) += std::pow(size(Vector::Unit(6, j)), 2.0);
        for (Index k = 0; k < 2; ++k) {
          const Vector w = W.row(k).transpose();
          Vector gradient(6);  // of s^2 / 2, by central differences
          for (Index j = 0; j < 6; ++j) {
            const Vector h = 1e-6 * Vector::Unit(6, j);
            gradient(j) = (std::pow(size(w + h), 2.0) - std::pow(size(w - h), 2.0)) / 4e-6;
          }
          CHECK(square(k, i) == doctest::Approx(std::pow(size(w), 2.0)).epsilon(1e-12));
          CHECK(slope(k, i) == doctest::Approx(gradient.dot(V.row(k).transpose())).epsilon(1e-5));
          if (k == 0) CHECK(distance(each.row(i).transpose(), gradient) <= 1e-6 * (1.0 + gradient.norm()));
          want_sum.row(k) += a(k, i) * gradient.transpose();
        }
      }
      CHECK(distance(sum, want_sum) <= 1e-6 * (1.0 + want_sum.norm()));
      for (Index j = 0; j < 6; ++j) {
        for (Index k = j + 1; k < 6; ++k) squares(j, k) = want_squares(j, k);  // the upper triangle is free
      }
      CHECK(distance(squares, want_squares) <= 1e-12 * (1.0 + want_squares.norm()));
      CHECK((diagonals - largest).minCoeff() >= -1e-12 * largest.maxCoeff());
      CHECK(scratch.intact());
    }
  }
}

TEST_CASE("kinds know their names, shapes and sizes") {
  BatchMaker<double> wide(4, 3, 1);
  BatchMaker<float> narrow(4, 3, 1);
  using Wide = BatchMaker<double>::Extra;
  using Narrow = BatchMaker<float>::Extra;
  const auto expect = [](const Batch& batch, const std::string& kind, Index row_bytes) {
    CAPTURE(batch.name);
    CHECK(batch.covariances->kind() == kind);
    CHECK(batch.covariances->n_samples() == 4);
    CHECK(batch.covariances->n_features() == 3);
    CHECK(batch.covariances->row_bytes() == row_bytes);
    for (Index row = 0; row < 4; ++row) batch.covariances->prefetch(row);
  };
  expect(wide.zero(), "zero", 0);
  expect(wide.isotropic(true), "isotropic", 8);
  expect(narrow.isotropic(false), "isotropic", 4);
  expect(wide.diagonal(false), "diagonal", 24);
  expect(narrow.diagonal(true), "diagonal", 12);
  expect(wide.full(), "full", 72);
  expect(narrow.full(), "full", 36);
  expect(wide.low_rank(2, Wide::none), "low_rank", 48);
  expect(narrow.low_rank(2, Narrow::stds), "low_rank", 24 + 12);
  expect(wide.ragged(1, Wide::none), "low_rank", 12);  // ranks 0, 1, 0, 1: twelve bytes on average
}

TEST_CASE("ranks are those of the offsets") {
  const double factors[6] = {};
  const Index offsets[] = {0, 0, 2, 3};
  const halosvm::LowRankCovariances covariances(ArrayView(factors, 1, 6), offsets, 3, 2);
  CHECK(covariances.rank(0) == 0);
  CHECK(covariances.rank(1) == 2);
  CHECK(covariances.rank(2) == 1);
}

TEST_CASE("constructors name the sizes that do not fit") {
  const double numbers[24] = {};
  const ArrayView view(numbers, 6, 2);
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(contains(error_of([&] { halosvm::IsotropicCovariances(view, 2); }), "variances must have one value"));
  CHECK(contains(error_of([&] { halosvm::FullCovariances(view, 4); }), "matrices has 6 rows"));
  CHECK(error_of([&] { halosvm::FullCovariances(view, 3); }).empty());
  CHECK(contains(error_of([&] { halosvm::LowRankCovariances(view, 3, 3); }), "factors has 6 rows"));
  CHECK(error_of([&] { halosvm::LowRankCovariances(view, 2, 3); }).empty());
  CHECK(contains(error_of([&] { halosvm::LowRankCovariances(view, 2, 3, ArrayView(numbers, 3, 3)); }),
                 "diagonal has 3 rows"));
  CHECK(contains(error_of([&] { halosvm::LowRankCovariances(view, 2, 3, ArrayView(numbers, 2, 4)); }),
                 "diagonal has 4 columns"));
  const ArrayView flat(numbers, 1, 12);
  const Index from_one[] = {1, 2, 5};
  const Index down[] = {0, 5, 4};
  const Index short_one[] = {0, 1, 3};
  CHECK(contains(error_of([&] { halosvm::LowRankCovariances(flat, from_one, 2, 3); }), "offsets must begin with 0"));
  CHECK(contains(error_of([&] { halosvm::LowRankCovariances(flat, down, 2, 3); }), "offsets must not decrease"));
  CHECK(contains(error_of([&] { halosvm::LowRankCovariances(flat, short_one, 2, 3); }), "factors has 12 values"));
}

TEST_CASE("a check accepts every valid kind") {
  for (const Batch& batch : all_batches(20, 4, 40)) {
    CAPTURE(batch.name);
    for (const int n_threads : {1, 3}) CHECK(check(*batch.covariances, n_threads).empty());
  }
}

TEST_CASE_TEMPLATE("a check of variances names the first that is negative, not finite or too large", T, double, float) {
  constexpr Index n = 400;
  constexpr Index d = 3;
  std::vector<T> numbers(n * d, T{1});
  for (const bool squared : {false, true}) {
    const halosvm::DiagonalCovariances diagonal(ArrayView(numbers.data(), n, d, squared));
    const halosvm::IsotropicCovariances isotropic(ArrayView(numbers.data(), n, 1, squared), d);
    numbers[399] = T{-9};
    struct Bad {
      double value = 0.0;
      std::string rule;
    };
    const Bad bad_values[] = {{-0.5, "-0.5; it must be >= 0 and finite"},
                              {not_a_number, "nan; it must be >= 0 and finite"},
                              {infinity, "inf; it must be >= 0 and finite"},
                              {1e200, squared ? "1e+200; values beyond 1e+75 overflow: rescale"
                                              : "1e+200; values beyond 1e+150 overflow: rescale"}};
    for (const Bad& bad : bad_values) {
      const double value = bad.value;
      const std::string& rule = bad.rule;
      if (sizeof(T) == sizeof(float) && value == 1e200) continue;  // no such float
      for (const int n_threads : {1, 4}) {
        CAPTURE(value);
        numbers[17 * d + 2] = static_cast<T>(value);
        CHECK(check(diagonal, n_threads) == "X_cov row 17, column 2 is " + rule);
        numbers[17 * d + 2] = T{1};
        numbers[17] = static_cast<T>(value);
        CHECK(check(isotropic, n_threads) == "X_cov row 17 is " + rule);
        numbers[17] = T{1};
      }
    }
    numbers[399] = T{1};
  }
}

TEST_CASE("a check of matrices names the first row that is not symmetric, not positive semi-definite or not finite") {
  constexpr Index n = 150;
  constexpr Index d = 3;
  std::vector<double> numbers(n * d * d, 0.0);
  const halosvm::FullCovariances full(ArrayView(numbers.data(), n * d, d), n);
  const auto entry = [&](Index row, Index i, Index j) -> double& {
    return numbers[static_cast<std::size_t>((row * d + i) * d + j)];
  };
  for (Index row = 1; row < n; ++row) {
    for (Index i = 0; i < d; ++i) entry(row, i, i) = 2.0 * static_cast<double>(row);
  }
  for (const int n_threads : {1, 4}) {
    CAPTURE(n_threads);
    CHECK(check(full, n_threads).empty());

    entry(140, 0, 2) = 1.0;  // a later row must not be named instead
    entry(17, 1, 2) = 0.25;
    const std::string error = check(full, n_threads);
    const bool upper = error == "X_cov row 17 is not symmetric: entry (1, 2) is 0.25, its mirror image 0";
    const bool lower = error == "X_cov row 17 is not symmetric: entry (2, 1) is 0, its mirror image 0.25";
    INFO(error);
    CHECK((upper || lower));
    entry(17, 2, 1) = 0.25 * (1 + 1e-9);
    entry(140, 0, 2) = 0.0;
    CHECK(check(full, n_threads).empty());

    entry(140, 0, 0) = -1.0;
    entry(17, 1, 2) = entry(17, 2, 1) = 35.0;  // eigenvalues 34 +- 35
    CHECK(check(full, n_threads) == "X_cov row 17 has the eigenvalue -1; a covariance must be positive semi-definite");
    entry(17, 1, 2) = entry(17, 2, 1) = 34.0 * (1 + 1e-9);  // an eigenvalue of -1e-9 of the largest is rounding
    entry(140, 0, 0) = 280.0;
    CHECK(check(full, n_threads).empty());
    entry(17, 1, 2) = entry(17, 2, 1) = 0.0;

    for (const double value : {not_a_number, infinity, -infinity}) {
      entry(18, 1, 0) = entry(18, 0, 1) = value;
      CHECK(check(full, n_threads) ==
            "X_cov row 18, column 1 is " + halosvm::check::text(value) + "; it must be finite");
    }
    entry(18, 1, 0) = entry(18, 0, 1) = 1e200;
    CHECK(check(full, n_threads) == "X_cov row 18, column 1 is 1e+200; values beyond 1e+150 overflow: rescale");
    entry(18, 1, 0) = entry(18, 0, 1) = 0.0;
  }
}

TEST_CASE("a check of matrices accepts any scale") {
  for (const double scale : {1e-300, 1e-160, 1e-20, 1e20, 1e149}) {
    CAPTURE(scale);
    double numbers[] = {2 * scale, scale, scale, 2 * scale};
    const halosvm::FullCovariances full(ArrayView(numbers, 2, 2), 1);
    CHECK(check(full).empty());
    numbers[0] = -2 * scale;
    CHECK(!check(full).empty());
  }
}

TEST_CASE("a check of factors allows negative numbers and names the row of those that are not finite") {
  constexpr Index n = 30;
  constexpr Index d = 3;
  std::vector<double> factors(n * d * 2, -1.0);
  std::vector<double> diagonal(n * d, 1.0);
  const halosvm::LowRankCovariances covariances(ArrayView(factors.data(), n * d, 2), n, d,
                                                ArrayView(diagonal.data(), n, d));
  CHECK(check(covariances).empty());
  factors[(17 * d + 2) * 2 + 1] = not_a_number;
  CHECK(check(covariances) == "X_cov row 17, column 1 is nan; factors must be finite");
  factors[(17 * d + 2) * 2 + 1] = 1e200;
  CHECK(check(covariances) == "X_cov row 17, column 1 is 1e+200; values beyond 1e+150 overflow: rescale");
  factors[(17 * d + 2) * 2 + 1] = 0.0;
  diagonal[20 * d + 1] = -0.5;
  CHECK(check(covariances) == "X_cov diagonal row 20, column 1 is -0.5; it must be >= 0 and finite");
}

TEST_CASE("a check of factors of different ranks names the row too") {
  constexpr Index d = 3;
  const Index offsets[] = {0, 2, 2, 5, 6};
  std::vector<double> factors(18, 1.0);
  const halosvm::LowRankCovariances covariances(ArrayView(factors.data(), 1, 18), offsets, 4, d);
  CHECK(check(covariances).empty());
  factors[11] = not_a_number;  // example 2, feature 1, column 2 of 3
  const std::string error = check(covariances);
  CAPTURE(error);
  CHECK(error.find("X_cov row 2") == 0);
  CHECK(error.find("is nan; factors must be finite") != std::string::npos);
}

TEST_CASE("a batch without rows is valid") {
  const double none[1] = {};
  CHECK(check(halosvm::ZeroCovariances(0, 3)).empty());
  CHECK(check(halosvm::DiagonalCovariances(ArrayView(none, 0, 3))).empty());
  CHECK(check(halosvm::FullCovariances(ArrayView(none, 0, 3), 0)).empty());
  CHECK(check(halosvm::LowRankCovariances(ArrayView(none, 0, 2), 0, 3)).empty());
}
