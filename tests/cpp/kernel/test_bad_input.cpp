#include "halosvm/halosvm.hpp"
#include "oracle/errors.hpp"
#include "oracle/no_numbers.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

using halosvm::ArrayView;
using halosvm::ExpectedKernel;
using halosvm::Gaussians;
using halosvm::GramTarget;
using halosvm::Index;
using halosvm::Matrix;
using halosvm::Vector;
using oracle::not_a_number;
using oracle::refused;

namespace {

const std::vector<double> means{0.0, 1.0, 2.0, 3.0, 4.0, 5.0};
const std::vector<double> broken{0.0, 1.0, 2.0, not_a_number, 4.0, 5.0};
const std::vector<double> below{0.0, 1.0, 2.0, -3.0, 4.0, 5.0};

Gaussians examples(Index n, Index d, const std::vector<double>& x = means, const std::vector<double>& s = means) {
  return {ArrayView(x.data(), n, d), std::make_shared<halosvm::DiagonalCovariances>(ArrayView(s.data(), n, d, true))};
}

}  // namespace

TEST_CASE("Gram matrices refuse outputs and numbers that cannot be") {
  const ExpectedKernel kernel;
  std::vector<double> memory(9);
  std::vector<float> narrow(9);
  const GramTarget out{memory.data(), nullptr, 3};
  const Gaussians X = examples(3, 2);
  const auto gram = [&](const ExpectedKernel& of, const Gaussians& left, const Gaussians& right, const GramTarget& to) {
    return refused([&] { halosvm::gram(of, left, right, to, {}); });
  };
  CHECK(gram(kernel, X, X, out).empty());
  CHECK(gram(kernel, X, X, {nullptr, nullptr, 3}) == "out");
  CHECK(gram(kernel, X, X, {memory.data(), narrow.data(), 3}) == "out");
  CHECK(gram(kernel, X, X, {memory.data(), nullptr, 2}) == "stride");
  CHECK(gram(kernel, X, examples(2, 3), out) == "Y");
  CHECK(gram(kernel, examples(3, 2, broken), X, out) == "means");
  CHECK(gram(kernel, X, examples(3, 2, means, below), out) == "covariances");
  CHECK(refused([&] { halosvm::gram_diagonal(kernel, examples(3, 2, broken), {}); }) == "means");
  for (const double bad : {not_a_number, halosvm::infinity, -1.0, 0.0}) {
    ExpectedKernel odd;
    odd.gamma = Vector::Constant(1, bad);
    CHECK(gram(odd, X, X, out) == "gamma");
  }
  CHECK(gram(kernel, examples(0, 2), X, out).empty());
}

TEST_CASE("variances of expansions refuse outputs, coefficients and numbers that cannot be") {
  const ExpectedKernel kernel;
  const Gaussians X = examples(3, 2);
  const auto variance = [&](const Gaussians& of, const Gaussians& Z, const Matrix& coefficients, Index n, Index k) {
    Matrix out(n, k);
    return refused([&] { halosvm::expansion_variance(kernel, of, Z, coefficients, out, {}); });
  };
  const Matrix coefficients = Matrix::Ones(2, 3);
  CHECK(variance(X, X, coefficients, 3, 2).empty());
  CHECK(variance(X, X, coefficients, 2, 2) == "out");
  CHECK(variance(X, X, coefficients, 3, 1) == "out");
  CHECK(variance(X, X, Matrix::Ones(2, 2), 3, 2) == "coefficients");
  CHECK(variance(X, X, Matrix::Constant(2, 3, not_a_number), 3, 2) == "coefficients");
  CHECK(variance(X, examples(2, 3), coefficients, 3, 2) == "Z");
  CHECK(variance(examples(3, 2, broken), X, coefficients, 3, 2) == "means");
  CHECK(variance(X, examples(3, 2, means, below), coefficients, 3, 2) == "covariances");
}
