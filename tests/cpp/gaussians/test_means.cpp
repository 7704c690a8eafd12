#include "halosvm/gaussians/means.hpp"
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

template <class T, class I>
void check_operations(bool moved) {
  const Twins<T, I> twins(20, 7);
  oracle::Random random(4);
  const Vector origin = random.normal_matrix(7, 1);
  const halosvm::SparseMeans all(twins.view());
  const auto means = all.seen_from(moved ? origin : Vector::Zero(7));
  const Matrix X = twins.dense.rowwise() - means->origin().transpose();
  const Index some[] = {3, 2, 11, 3};
  for (const Rows rows : {Rows{0, 20}, Rows{5, 6}, Rows{0, 4, some}}) {
    Matrix block(rows.count, 7);
    CHECK(means->block(rows, block.data()).data() == block.data());
    Matrix expected(rows.count, 7);
    for (Index i = 0; i < rows.count; ++i) expected.row(i) = X.row(rows[i]);
    CHECK((block - expected).norm() == 0.0);
    for (const Index problems : {1, 3}) {
      const Matrix W = random.normal_matrix(problems, 7);
      const Matrix a = random.normal_matrix(problems, rows.count);
      Matrix scores(problems, rows.count);
      means->multiply(rows, W, scores, nullptr);
      CHECK((scores - W * expected.transpose()).norm() < 1e-13);
      Matrix sum = Matrix::Ones(problems, 7);
      means->add_weighted_rows(rows, a, sum, nullptr);
      CHECK((sum - a * expected - Matrix::Ones(problems, 7)).norm() < 1e-13);
    }
    std::vector<Index> columns;
    CHECK(means->add_support(rows, columns));
    Matrix outside = expected;
    for (const Index j : columns) outside.col(j).setZero();
    CHECK(outside.isZero());
    Vector squares(rows.count);
    means->squares(rows, squares, nullptr);
    CHECK((squares - expected.rowwise().squaredNorm()).norm() < 1e-13);
    const Vector c = random.normal_matrix(rows.count, 1);
    Vector first = Vector::Ones(7);
    Vector second = Vector::Ones(7);
    means->add_moments(rows, c, first, second, nullptr);
    CHECK((first - expected.transpose() * c - Vector::Ones(7)).norm() < 1e-13);
    CHECK((second - expected.cwiseAbs2().transpose() * c - Vector::Ones(7)).norm() < 1e-13);
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

template <class T>
void check_descent(bool moved) {
  const Twins<T, std::int32_t> twins(20, 7);
  const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> stored = twins.dense.template cast<T>();
  const halosvm::SparseMeans all(twins.view());
  const halosvm::DenseMeans full(halosvm::ArrayView(stored.data(), 20, 7));
  oracle::Random random(6);
  const Vector start = random.normal_matrix(7, 1);
  const auto few = all.seen_from(moved ? Vector::Constant(7, 0.5) : Vector::Zero(7));
  const auto many = moved ? full.seen_from(few->origin()) : nullptr;
  const halosvm::Means& dense = moved ? *many : full;
  const Index some[] = {3, 2, 11, 3, 19};
  for (const Rows rows : {Rows{0, 20}, Rows{5, 6}, Rows{0, 5, some}}) {
    Vector w = start;
    for (Index i = 0; i < rows.count; ++i) {
      const Vector x = twins.dense.row(rows[i]).transpose() - few->origin();
      if (i != 1) w += (0.1 - 0.3 * x.dot(w)) * x;
    }
    CHECK((descended(*few, rows, start) - w).norm() < 1e-12 * (1.0 + w.norm()));
    CHECK((descended(dense, rows, start) - w).norm() < 1e-12 * (1.0 + w.norm()));
    Vector squares(rows.count);
    Vector scratch(7);
    dense.squares(rows, squares, scratch.data());
    for (Index i = 0; i < rows.count; ++i) {
      CHECK(std::abs(squares(i) - (twins.dense.row(rows[i]).transpose() - few->origin()).squaredNorm()) < 1e-13);
    }
  }
}

}  // namespace

TEST_CASE("each row is added as its score says, that of the weights which the rows before have left") {
  for (const bool moved : {false, true}) {
    check_descent<double>(moved);
    check_descent<float>(moved);
  }
}

TEST_CASE("sparse means equal their dense matrix in every operation, type and index") {
  for (const bool moved : {false, true}) {
    check_operations<double, std::int32_t>(moved);
    check_operations<double, std::int64_t>(moved);
    check_operations<float, std::int32_t>(moved);
    check_operations<float, std::int64_t>(moved);
  }
}

TEST_CASE("an origin moves the columns that are stored in half of the rows or more, and no others") {
  const Twins<double, std::int32_t> twins(200, 7);
  const auto means = halosvm::SparseMeans(twins.view()).seen_from(Vector::Ones(7));
  CHECK(means->origin() == Vector::Unit(7, 1));
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
