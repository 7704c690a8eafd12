#include "halosvm/gaussians/means.hpp"
#include "oracle/dense_algebra.hpp"
#include "oracle/errors.hpp"
#include "oracle/random.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using halosvm::Index;
using halosvm::Matrix;
using halosvm::Rows;
using halosvm::Vector;
using oracle::distance;
using oracle::product;
using oracle::times;

namespace {

/// Rows with many zeros, column 1 far from 0 and stored in all rows but one, and the same in CSR.
template <class T, class I>
struct Twins {
  explicit Twins(Index n, Index d, double far = 0.0) : dense(n, d) {
    oracle::Random random(3);
    offsets.push_back(0);
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < d; ++j) {
        const bool is_stored = j == 1 ? i != 2 : random.uniform(0.0, 1.0) < 0.3;
        const T value = static_cast<T>(random.normal() + (j == 1 ? far : 0.0));
        dense(i, j) = is_stored ? static_cast<double>(value) : 0.0;
        if (!is_stored) continue;
        values.push_back(value);
        columns.push_back(static_cast<I>(j));
      }
      offsets.push_back(static_cast<I>(values.size()));
    }
  }
  halosvm::SparseView view() const {
    return {values.data(), columns.data(), offsets.data(), dense.rows(), dense.cols()};
  }

  Matrix dense;
  std::vector<T> values;
  std::vector<I> columns;
  std::vector<I> offsets;
};

/// X with each row seen from an origin.
Matrix seen_from(Matrix X, const Vector& origin) {
  X.rowwise() -= origin.transpose();
  return X;
}

/// \param dense the rows of \p all.
void check_operations(const Matrix& dense, const halosvm::SparseMeans& all, bool moved) {
  oracle::Random random(4);
  const Vector origin = random.normal_vector(7);
  const auto means = all.seen_from(moved ? origin : Vector::Zero(7));
  const Matrix X = seen_from(dense, means->origin());
  const Index some[] = {3, 2, 11, 3};
  for (const Rows rows : {Rows{0, 20}, Rows{5, 6}, Rows{0, 4, some}}) {
    Matrix block(rows.count, 7);
    CHECK(means->block(rows, block.data()).data() == block.data());
    Matrix expected(rows.count, 7);
    for (Index i = 0; i < rows.count; ++i) expected.row(i) = X.row(rows[i]);
    CHECK(block == expected);
    for (const Index problems : {1, 3}) {
      const Matrix W = random.normal_matrix(problems, 7);
      const Matrix a = random.normal_matrix(problems, rows.count);
      Matrix scores(problems, rows.count);
      means->multiply(rows, W, scores, nullptr);
      CHECK(distance(scores, product(W, expected.transpose())) < 1e-13);
      Matrix sum = Matrix::Ones(problems, 7);
      means->add_weighted_rows(rows, a, sum, nullptr);
      CHECK(distance(sum, product(a, expected) + Matrix::Ones(problems, 7)) < 1e-13);
    }
    std::vector<Index> columns;
    CHECK(means->add_support(rows, columns));
    Matrix outside = expected;
    for (const Index j : columns) outside.col(j).setZero();
    CHECK(outside.isZero());
    const Matrix squares_of = expected.cwiseAbs2();
    Vector squares(rows.count);
    means->squares(rows, squares, nullptr);
    CHECK(distance(squares, squares_of.rowwise().sum()) < 1e-13);
    const Vector c = random.normal_vector(rows.count);
    Vector first = Vector::Ones(7);
    Vector second = Vector::Ones(7);
    means->add_moments(rows, c, first, second, nullptr);
    CHECK(distance(first, times(expected.transpose(), c) + Vector::Ones(7)) < 1e-13);
    CHECK(distance(second, times(squares_of.transpose(), c) + Vector::Ones(7)) < 1e-13);
  }
}

/// w after each row in turn was added 0.3 times as often as its score says, and 0.1 times more.
Vector descended(const halosvm::Means& means, const Rows& rows, Vector w) {
  Vector scratch(means.cols());
  Index next = 0;
  means.descend(
      rows, w,
      [&](Index i, double score) {
        CHECK(i == next++);
        return i == 1 ? 0.0 : 0.1 - 0.3 * score;
      },
      scratch.data());
  return w;
}

template <class T, class I>
void check_operations() {
  const Twins<T, I> twins(20, 7);
  for (const bool moved : {false, true}) check_operations(twins.dense, halosvm::SparseMeans(twins.view()), moved);
}

/// \param X the rows of \p all and \p full.
void check_descent(const Matrix& X, const halosvm::SparseMeans& all, const halosvm::DenseMeans& full, bool moved) {
  oracle::Random random(6);
  const Vector start = random.normal_vector(7);
  const auto few = all.seen_from(moved ? Vector::Constant(7, 0.5) : Vector::Zero(7));
  const auto many = moved ? full.seen_from(few->origin()) : nullptr;
  const halosvm::Means& dense = moved ? *many : full;
  const Index some[] = {3, 2, 11, 3, 19};
  for (const Rows rows : {Rows{0, 20}, Rows{5, 6}, Rows{0, 5, some}}) {
    Vector w = start;
    for (Index i = 0; i < rows.count; ++i) {
      const Vector x = X.row(rows[i]).transpose() - few->origin();
      if (i != 1) w += (0.1 - 0.3 * x.dot(w)) * x;
    }
    CHECK(distance(descended(*few, rows, start), w) < 1e-12 * (1.0 + w.norm()));
    CHECK(distance(descended(dense, rows, start), w) < 1e-12 * (1.0 + w.norm()));
    Vector squares(rows.count);
    Vector scratch(7);
    dense.squares(rows, squares, scratch.data());
    for (Index i = 0; i < rows.count; ++i) {
      CHECK(std::abs(squares(i) - (X.row(rows[i]).transpose() - few->origin()).squaredNorm()) < 1e-13);
    }
  }
}

template <class T>
void check_descent() {
  const Twins<T, std::int32_t> twins(20, 7);
  const std::vector<T> numbers(twins.dense.data(), twins.dense.data() + twins.dense.size());
  for (const bool moved : {false, true}) {
    check_descent(twins.dense, halosvm::SparseMeans(twins.view()),
                  halosvm::DenseMeans(halosvm::ArrayView(numbers.data(), 20, 7)), moved);
  }
}

}  // namespace

TEST_CASE("each row is added as its score says, that of the weights which the rows before have left") {
  check_descent<double>();
  check_descent<float>();
}

TEST_CASE("sparse means equal their dense matrix in every operation, type and index") {
  check_operations<double, std::int32_t>();
  check_operations<double, std::int64_t>();
  check_operations<float, std::int32_t>();
  check_operations<float, std::int64_t>();
}

TEST_CASE("an origin moves the columns that are stored in half of the rows or more, and no others") {
  const Twins<double, std::int32_t> twins(200, 7);
  const auto means = halosvm::SparseMeans(twins.view()).seen_from(Vector::Ones(7));
  CHECK(means->origin() == Vector::Unit(7, 1));
}

TEST_CASE("an origin is one more where means are seen from one already") {
  const Twins<double, std::int32_t> twins(200, 7);
  const halosvm::DenseMeans dense({twins.dense.data(), 200, 7});
  const halosvm::SparseMeans sparse(twins.view());
  const Vector heeded = Vector::Unit(7, 1);
  for (const halosvm::Means* means :
       {static_cast<const halosvm::Means*>(&dense), static_cast<const halosvm::Means*>(&sparse)}) {
    const auto once = means->seen_from(Vector::Constant(7, 0.5));
    const auto twice = once->seen_from(Vector::Constant(7, -2.0));
    const Vector share = means->sparse() ? heeded : Vector::Ones(7);
    CHECK(twice->origin() == -1.5 * share);
    CHECK(twice->origin_from(*once) == -2.0 * share);
    CHECK(twice->origin_from(*means) == -1.5 * share);
    Matrix block(200, 7);
    CHECK(distance(twice->block({0, 200}, block.data()), seen_from(twins.dense, -1.5 * share)) < 1e-15);
  }
}

TEST_CASE("scores of a column far from 0 keep their digits when seen from an origin") {
  const Twins<double, std::int32_t> twins(50, 7, 0x1p40);
  const auto means = halosvm::SparseMeans(twins.view()).seen_from(Vector::Constant(7, 0x1p40));
  Matrix scores(1, 50);
  means->multiply({0, 50}, Matrix::Ones(1, 7), scores, nullptr);
  for (Index i = 0; i < 50; ++i) {
    if (i == 2) continue;  // where the column is not stored
    double exact = twins.dense(i, 1) - 0x1p40;
    for (const Index j : {0, 2, 3, 4, 5, 6}) exact += twins.dense(i, j);
    CHECK(std::abs(scores(0, i) - exact) < 1e-14);
  }
  CHECK(scores(0, 2) < -0x1p39);
}

TEST_CASE("checks name the row, the column and the value, and columns out of order") {
  Twins<double, std::int64_t> twins(20, 7);
  const auto check = [&twins] { halosvm::SparseMeans(twins.view()).check("X", {}); };
  check();
  const auto at = static_cast<std::size_t>(twins.offsets[5]);
  const std::string place = "X row 5, column " + std::to_string(twins.columns[at]) + " is ";
  const double given = twins.values[at];
  twins.values[at] = std::numeric_limits<double>::quiet_NaN();
  CHECK(oracle::error_of(check).find(place + "nan; it must be finite") == 0);
  twins.values[at] = -1e200;
  CHECK(oracle::error_of(check).find(place + "-1e+200; values beyond 1e+150") == 0);
  twins.values[at] = given;
  twins.columns[at] = 7;
  CHECK(oracle::error_of(check).find("X has column 7 in row 5, where columns must ascend and be below 7") == 0);
}
