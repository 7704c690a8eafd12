#include "halosvm/halosvm.hpp"
#include "oracle/errors.hpp"
#include "oracle/no_numbers.hpp"
#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include <vector>

using halosvm::ArrayView;
using halosvm::Evaluation;
using halosvm::Gaussians;
using halosvm::Index;
using halosvm::LocalObjective;
using halosvm::Matrix;
using halosvm::SummedObjective;
using halosvm::Vector;
using oracle::BatchMaker;
using oracle::error_of;
using oracle::not_a_number;
using oracle::Problem;
using oracle::refused;

namespace {

/// An objective of two examples.
struct Two {
  std::vector<double> means{1.0, 2.0, 3.0, 4.0};
  std::vector<double> stds{1.0, 0.0, 0.5, 2.0};
  std::vector<std::int16_t> codes{0, 1};
  halosvm::Targets targets{codes.data(), 1};
  std::vector<double> weights{1.0, 1.0};
  double lam = 1.0;
  std::shared_ptr<const halosvm::Loss> loss = halosvm::make_loss("expected_hinge");

  LocalObjective operator()() const {
    const auto covariances = std::make_shared<halosvm::DiagonalCovariances>(ArrayView(stds.data(), 2, 2, true));
    return {Gaussians(ArrayView(means.data(), 2, 2), covariances), targets, weights.data(), lam, loss, true, {}};
  }
};

/// What is refused after a change.
template <class Change>
std::string after(const Change& change) {
  Two two;
  two.targets.codes = two.codes.data();
  change(two);
  return refused(two);
}

}  // namespace

TEST_CASE("objectives of nothing, or of numbers beyond their range, are refused by name") {
  CHECK(after([](Two&) {}).empty());
  CHECK(after([](Two& two) { two.loss = nullptr; }) == "loss");
  CHECK(after([](Two& two) { two.targets.codes = nullptr; }) == "labels");
  CHECK(after([](Two& two) { two.targets.n_problems = 0; }) == "n_problems");
  CHECK(after([](Two& two) { two.targets.positive = 2; }) == "positive");
  CHECK(after([](Two& two) { two.codes[1] = 2; }) == "labels");
  CHECK(after([](Two& two) { two.codes[1] = 0; }) == "labels");
  for (const double bad : {not_a_number, halosvm::infinity, -halosvm::infinity, 1e200}) {
    CHECK(after([&](Two& two) { two.means[3] = bad; }) == "means");
  }
  for (const double bad : {not_a_number, halosvm::infinity, -0.5}) {
    CHECK(after([&](Two& two) { two.stds[3] = bad; }) == "covariances");
    CHECK(after([&](Two& two) { two.weights[1] = bad; }) == "sample_weight");
    CHECK(after([&](Two& two) { two.lam = bad; }) == "regularisation");
  }
  Two two;
  two.stds[2] = -0.5;
  CHECK(error_of(two) == "covariances row 1, column 0 is -0.5; it must be >= 0 and finite");
}

TEST_CASE("points and outputs of other shapes than the objective's are refused by name") {
  const Problem problem(BatchMaker<double>(9, 3, 5).diagonal(false), 3, 6);
  const LocalObjective objective = problem.objective();
  const Matrix W = Matrix::Zero(3, 3);
  const Vector b = Vector::Zero(3);
  Evaluation out(3, 3);
  const auto refused_at = [&](const Matrix& at, const Vector& intercept, Evaluation into) {
    const std::string first = refused([&] { objective.evaluate(at, intercept, 0.0, into); });
    CHECK(refused([&] { objective.evaluate(at, intercept, 0.1, into); }) == first);
    CHECK(refused([&] { objective.hessian_vector(at, intercept, W, b, into); }) == first);
    if (first != "out") {
      CHECK(refused([&] { objective.hessian_vector(W, b, at, intercept, into); }) == first);
      CHECK(refused([&] { objective.lower_bound(at, intercept); }) == first);
      CHECK(refused([&] { objective.exact_intercept(at, intercept); }) == first);
    }
    return first;
  };
  CHECK(refused_at(W, b, out).empty());
  CHECK(refused_at(Matrix::Zero(2, 3), b, out) == "coef");
  CHECK(refused_at(Matrix::Zero(3, 4), b, out) == "coef");
  CHECK(refused_at(W, Vector::Zero(2), out) == "intercept");
  CHECK(refused_at(W, b, Evaluation(2, 3)) == "out");
  CHECK(refused_at(W, b, Evaluation(3, 2)) == "out");
  CHECK(refused([&] { objective.hessian(W, b, Vector::Zero(3)); }) == "objective");
  CHECK(refused([&] { objective.only(0).hessian(Matrix::Zero(1, 3), Vector::Zero(1), Vector::Zero(2)); }) == "centre");
}

TEST_CASE("objectives made of others refuse what cannot be") {
  const Problem problem(BatchMaker<double>(9, 3, 5).diagonal(false), 3, 6);
  const LocalObjective objective = problem.objective();
  CHECK(refused([&] { objective.only(3); }) == "k");
  CHECK(refused([&] { objective.only(-1); }) == "k");
  CHECK(refused([&] { objective.sampled({0, 9}); }) == "rows");
  CHECK(refused([&] { objective.sampled({-1}); }) == "rows");
  CHECK(refused([&] { objective.sampled({}); }) == "rows");
  CHECK(refused([&] { objective.with_loss(nullptr); }) == "loss");
  for (const double bad : {-1.0, not_a_number, halosvm::infinity}) {
    CHECK(refused([&] { objective.with_spreads_times(bad); }) == "factor");
    CHECK(refused([&] { objective.smoothed(bad); }) == "floor");
  }
}

TEST_CASE("sums of nothing, and parts of other shapes, are refused by name") {
  using Parts = std::vector<SummedObjective::Part>;
  const auto loss = halosvm::make_loss("expected_hinge");
  const auto nothing = [](const halosvm::ConstMatrixRef&, const halosvm::ConstVectorRef&, double, Evaluation&) {};
  const auto moments = [] { return halosvm::Moments{Vector::Zero(2), Vector::Zero(2), Vector::Zero(2), {}}; };
  const auto sum = [&](Parts parts, double at_origin = 1.0) {
    return SummedObjective(std::move(parts), 1, 3, 1.0, loss, true, at_origin);
  };
  CHECK(refused([&] { sum({}); }) == "parts");
  CHECK(refused([&] { sum({{1.0, {}, moments}}); }) == "parts");
  CHECK(refused([&] { sum({{1.0, nothing, {}}}); }) == "parts");
  CHECK(refused([&] { sum({{not_a_number, nothing, moments}}); }) == "weights");
  CHECK(refused([&] { sum({{1.0, nothing, moments}}, not_a_number); }) == "at_origin");
  CHECK(refused([&] { SummedObjective({{1.0, nothing, moments}}, 1, 3, 1.0, nullptr, true); }) == "loss");
  CHECK(error_of([&] { sum({{1.0, nothing, moments}}).moments(); }) ==
        "a part's moments has 2 features, objective has 3");
  const auto small = [](const halosvm::ConstMatrixRef&, const halosvm::ConstVectorRef&, double, Evaluation& out) {
    out = Evaluation(1, 2);
  };
  Evaluation out(1, 3);
  CHECK(error_of([&] { sum({{1.0, small, moments}}).evaluate(Matrix::Zero(1, 3), Vector::Zero(1), 0.0, out); }) ==
        "a part's evaluation has 2 features, objective has 3");
}
