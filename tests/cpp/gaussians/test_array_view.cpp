#include "halosvm/gaussians/array_view.hpp"
#include "halosvm/core/check.hpp"
#include "oracle/accuracy.hpp"
#include "oracle/errors.hpp"
#include "oracle/no_numbers.hpp"
#include "oracle/random.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using halosvm::ArrayView;
using halosvm::ConstMatrixMap;
using halosvm::Execution;
using halosvm::Index;
using halosvm::Matrix;
using halosvm::Rows;
using oracle::error_of;
using oracle::infinity;
using oracle::not_a_number;
using oracle::real;

namespace {

template <class T>
std::vector<T> numbers(Index size, std::uint64_t seed) {
  oracle::Random random(seed);
  std::vector<T> out;
  for (Index i = 0; i < size; ++i) out.push_back(static_cast<T>(random.normal()));
  return out;
}

Execution with_threads(int n_threads) {
  Execution execution;
  execution.n_threads = n_threads;
  return execution;
}

}  // namespace

TEST_CASE("rows of a block are a run or a list") {
  const Rows run{5, 3};
  CHECK(run[0] == 5);
  CHECK(run[2] == 7);
  const Index list[] = {9, 1, 9};
  const Rows gathered{5, 3, list};
  CHECK(gathered[0] == 9);
  CHECK(gathered[1] == 1);
}

TEST_CASE("a run of float64 rows is the caller's own memory") {
  const auto data = numbers<double>(20, 1);
  double scratch[8] = {};
  const ArrayView view(data.data(), 5, 4);
  CHECK(view.block({1, 2}, scratch).data() == data.data() + 4);
  CHECK(view.values(3, 7, scratch) == data.data() + 3);
}

TEST_CASE_TEMPLATE("blocks hold the stored numbers, or their squares, for runs and for lists of rows", T, double,
                   float) {
  constexpr Index n = 11;
  constexpr Index d = 5;
  constexpr double canary = 77.0;
  const auto data = numbers<T>(n * d, 2);
  const Index list[] = {10, 0, 3, 3, 7};
  for (const bool squared : {false, true}) {
    const ArrayView view(data.data(), n, d, squared);
    const auto want = [&](Index row, Index col) {
      const auto x = static_cast<double>(data[static_cast<std::size_t>(row * d + col)]);
      return squared ? x * x : x;
    };
    for (const Rows& rows : {Rows{4, 6}, Rows{0, 1}, Rows{0, n}, Rows{0, 5, list}, Rows{0, 0}}) {
      std::vector<double> scratch(static_cast<std::size_t>(rows.count * d + 1), canary);
      const ConstMatrixMap block = view.block(rows, scratch.data());
      REQUIRE(block.rows() == rows.count);
      REQUIRE(block.cols() == d);
      for (Index i = 0; i < rows.count; ++i) {
        for (Index j = 0; j < d; ++j) CHECK(block(i, j) == want(rows[i], j));
      }
      CHECK(scratch.back() == canary);
    }
    std::vector<double> scratch(7);
    const double* values = view.values(12, 7, scratch.data());
    for (Index j = 0; j < 7; ++j) CHECK(values[j] == want((12 + j) / d, (12 + j) % d));
  }
}

TEST_CASE("row_bytes and empty describe the stored array") {
  const double wide[6] = {};
  const float narrow[6] = {};
  CHECK(ArrayView(wide, 2, 3).row_bytes() == 24);
  CHECK(ArrayView(narrow, 2, 3).row_bytes() == 12);
  CHECK(!ArrayView(narrow, 2, 3).empty());
  CHECK(ArrayView(narrow, 0, 3).empty());
  CHECK(ArrayView(narrow, 2, 0).empty());
  CHECK(ArrayView().empty());
}

TEST_CASE("prefetching every row leaves the numbers as they are") {
  const auto data = numbers<float>(3000, 3);
  const ArrayView view(data.data(), 3, 1000);
  for (Index row = 0; row < 3; ++row) view.prefetch(row);
  CHECK(data == numbers<float>(3000, 3));
}

TEST_CASE_TEMPLATE("a check names the first bad number of all, whatever the number of threads", T, double, float) {
  constexpr Index n = 40000;
  constexpr Index d = 3;
  std::vector<T> data(n * d, T{1});
  const ArrayView view(data.data(), n, d);
  for (const int n_threads : {1, 4}) {
    CHECK(error_of([&] { view.check("X", 0.0, "it must be >= 0", with_threads(n_threads)); }).empty());
  }
  data[39999 * d] = T{-3};
  data[17 * d + 2] = T{-0.5};
  data[18 * d + 1] = static_cast<T>(not_a_number);
  for (const int n_threads : {1, 4}) {
    CHECK(error_of([&] { view.check("X", 0.0, "it must be >= 0", with_threads(n_threads)); }) ==
          "X row 17, column 2 is -0.5; it must be >= 0");
  }
  data[17 * d + 2] = T{0};
  CHECK(error_of([&] { view.check("X", 0.0, "it must be >= 0", with_threads(4)); }) ==
        "X row 18, column 1 is nan; it must be >= 0");
  data[18 * d + 1] = T{0};
  CHECK(error_of([&] { view.check("X", 0.0, "it must be >= 0", with_threads(4)); }) ==
        "X row 39999, column 0 is -3; it must be >= 0");
  CHECK(error_of([&] { view.check("X", -4.0, "it must be >= -4", with_threads(4)); }).empty());
}

TEST_CASE("a check rejects what is not finite or beyond the largest value, and counts examples of several rows") {
  std::vector<double> data(12, 0.0);
  const ArrayView view(data.data(), 6, 2);
  const auto error = [&](double value) {
    data[9] = value;
    return error_of([&] { view.check("X_cov", -halosvm::largest_value, "it must be finite", with_threads(1), 3); });
  };
  CHECK(error(1e150).empty());
  CHECK(error(-1e150).empty());
  CHECK(error(infinity) == "X_cov row 1, column 1 is inf; it must be finite");
  CHECK(error(-infinity) == "X_cov row 1, column 1 is -inf; it must be finite");
  CHECK(error(not_a_number) == "X_cov row 1, column 1 is nan; it must be finite");
  CHECK(error(1e200) == "X_cov row 1, column 1 is 1e+200; values beyond 1e+150 overflow: rescale");
  CHECK(error(-1e200) == "X_cov row 1, column 1 is -1e+200; values beyond 1e+150 overflow: rescale");
}

TEST_CASE("a check of square roots limits them to the root of the largest value") {
  std::vector<double> data(4, 0.0);
  const ArrayView view(data.data(), 2, 2, true);
  const auto error = [&](double value) {
    data[2] = value;
    return error_of([&] { view.check("X_std", 0.0, "it must be >= 0", with_threads(1)); });
  };
  CHECK(error(0.9e75).empty());
  CHECK(error(1.1e75) == "X_std row 1, column 0 is 1.1e+75; values beyond 1e+75 overflow: rescale");
  CHECK(error(-1.0) == "X_std row 1, column 0 is -1; it must be >= 0");
}

TEST_CASE("products with weights and weighted sums of rows equal the double loop, for every shape") {
  oracle::Random random(4);
  for (const Index n : {1, 2, 3, 4, 5, 8, 13, 32, 33}) {
    for (const Index d : {1, 2, 3, 4, 7, 8, 16, 31}) {
      for (const Index k : {1, 2, 3, 5}) {
        CAPTURE(n);
        CAPTURE(d);
        CAPTURE(k);
        const Matrix X = random.normal_matrix(n, d);
        const Matrix wide = random.normal_matrix(k + 2, d + 3);  // parts of larger matrices, as callers have them
        const auto W = wide.block(1, 2, k, d);
        Matrix out = Matrix::Constant(k + 1, n + 2, 5.0);
        const ConstMatrixMap block(X.data(), n, d);
        halosvm::multiply(block, W, out.topLeftCorner(k, n));
        const Matrix coefficients = random.normal_matrix(k, n + 1);
        Matrix sum = random.normal_matrix(k, d);
        const Matrix before = sum;
        halosvm::add_weighted_rows(block, coefficients.leftCols(n), sum);
        double worst = 0.0;
        for (Index p = 0; p < k; ++p) {
          for (Index i = 0; i < n; ++i) {
            real want = 0;
            for (Index j = 0; j < d; ++j) want += real{X(i, j)} * real{W(p, j)};
            worst = std::max(worst, std::abs(static_cast<double>(out(p, i) - want)));
          }
          for (Index j = 0; j < d; ++j) {
            real want = before(p, j);
            for (Index i = 0; i < n; ++i) want += real{coefficients(p, i)} * real{X(i, j)};
            worst = std::max(worst, std::abs(static_cast<double>(sum(p, j) - want)));
          }
        }
        CHECK(worst < 1e-13);  // up to 33 terms of size 1
        CHECK((out.rightCols(2).array() == 5.0).all());
        CHECK((out.row(k).array() == 5.0).all());
      }
    }
  }
}
