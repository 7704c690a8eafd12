#include "halosvm/halosvm.hpp"
#include "oracle/errors.hpp"
#include "oracle/no_numbers.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <vector>

using halosvm::ArrayView;
using halosvm::Index;
using halosvm::LinearModel;
using halosvm::Matrix;
using halosvm::Vector;
using oracle::error_of;
using oracle::not_a_number;
using oracle::refused;

namespace {}  // namespace

TEST_CASE("scores and their deviations refuse outputs, models and numbers that cannot be") {
  std::vector<double> numbers{1.0, 2.0, 3.0, 4.0, 5.0, 6.0};
  const auto score = [&](const LinearModel& model, Index rows, Index cols) {
    Matrix out(rows, cols);
    return refused([&] { halosvm::decision_function(model, ArrayView(numbers.data(), 3, 2), out, {}); });
  };
  const auto spread = [&](const LinearModel& model, Index rows, Index cols) {
    Matrix out(rows, cols);
    const halosvm::DiagonalCovariances covariances(ArrayView(numbers.data(), 3, 2, true));
    return refused([&] { halosvm::decision_std(model, covariances, out, {}); });
  };
  const LinearModel model(2, 2);
  CHECK(score(model, 3, 2).empty());
  CHECK(spread(model, 3, 2).empty());
  for (const Index rows : {0, 2, 4}) {
    CHECK(score(model, rows, 2) == "out");
    CHECK(spread(model, rows, 2) == "out");
  }
  for (const Index cols : {0, 1, 3}) {
    CHECK(score(model, 3, cols) == "out");
    CHECK(spread(model, 3, cols) == "out");
  }
  Matrix small(2, 2);
  CHECK(error_of([&] { halosvm::decision_function(model, ArrayView(numbers.data(), 3, 2), small, {}); }) ==
        "out has 2 rows, X has 3");
  for (const double bad : {not_a_number, halosvm::infinity}) {
    LinearModel odd(2, 2);
    odd.coef(1, 0) = bad;
    CHECK(score(odd, 3, 2) == "coef");
    CHECK(spread(odd, 3, 2) == "coef");
    odd = LinearModel(2, 2);
    odd.intercept(1) = bad;
    CHECK(score(odd, 3, 2) == "intercept");
    numbers[3] = bad;
    CHECK(score(model, 3, 2) == "X");
    CHECK(spread(model, 3, 2) == "covariances");
    numbers[3] = 4.0;
  }
  numbers[3] = -4.0;
  CHECK(spread(model, 3, 2) == "covariances");
  LinearModel odd(2, 2);
  odd.intercept = Vector::Zero(1);
  CHECK(score(odd, 3, 2) == "intercept");
  CHECK(refused([] { LinearModel(2, 2).only(2); }) == "k");
}

TEST_CASE("sparse examples whose columns do not exist are refused before they are read") {
  const double values[] = {1.0, 2.0};
  const std::int32_t columns[] = {0, 1000000};
  const std::int32_t offsets[] = {0, 1, 2};
  const halosvm::SparseView view(values, columns, offsets, 2, 2);
  Matrix out(2, 1);
  CHECK(refused([&] { halosvm::decision_function(LinearModel(1, 2), halosvm::SparseMeans(view), out, {}); }) == "X");
  CHECK(refused([&] { halosvm::decision_std(LinearModel(1, 2), halosvm::SparseDiagonalCovariances(view), out, {}); }) ==
        "covariances");
}

TEST_CASE("probabilities refuse scores that are no numbers and deviations below 0") {
  const halosvm::PlattScaling curve{-1.0, 0.0};
  for (const double bad : {not_a_number, -1.0}) {
    CHECK(refused([&] { halosvm::side_probability(0.5, bad); }) == "std");
    CHECK(refused([&] { curve.expected_probability(0.5, bad); }) == "std");
  }
  CHECK(refused([&] { halosvm::side_probability(not_a_number, 1.0); }) == "mean");
  CHECK(refused([&] { curve.expected_probability(not_a_number, 1.0); }) == "mean");
  CHECK(refused([&] { halosvm::fit_platt(Vector::Zero(3), nullptr, nullptr); }) == "positive");
  const std::uint8_t positive[] = {0, 1, 1};
  CHECK(refused([&] { halosvm::fit_platt(Vector::Constant(3, not_a_number), positive, nullptr); }) == "decision");
  CHECK(refused([&] { halosvm::fit_platt(Vector(), nullptr, nullptr); }) == "weights");
}
