#include "halosvm/halosvm.hpp"
#include "oracle/errors.hpp"
#include "oracle/problem.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using halosvm::Index;
using halosvm::Labels;
using halosvm::LinearClassifier;
using halosvm::Matrix;
using halosvm::UncertainSVC;
using halosvm::Vector;
using oracle::BatchMaker;
using oracle::error_of;
using oracle::Problem;
using oracle::refused;

namespace {

/// Examples of classes with labels 7, -3, 40 ... and errors of their own.
struct Data {
  Data(Index n, Index d, int n_classes) : means(n, d), stds(n, d) {
    oracle::Random random(3);
    const int names[] = {7, -3, 40};
    means = random.normal_matrix(n, d);
    for (Index i = 0; i < n; ++i) {
      labels.push_back(names[i % n_classes]);
      means(i, i % n_classes) += 2.0;
      for (Index j = 0; j < d; ++j) stds(i, j) = random.uniform(0.1, 1.0);
    }
  }
  Matrix means, stds;
  std::vector<int> labels;
};

std::string temporary() { return (std::filesystem::temp_directory_path() / "halosvm_uncertain_svc.json").string(); }

}  // namespace

TEST_CASE("a fit is the minimum of C sum of losses + 1/2 |w|^2, certified, whatever integers the labels are") {
  const Data data(60, 3, 2);
  UncertainSVC svc;
  svc.C = 0.3;
  const LinearClassifier model = svc.fit(data.means, data.stds, data.labels);
  CHECK(model.classes == std::vector<std::int64_t>{-3, 7});
  CHECK(halosvm::converged(model.result.status));
  CHECK(model.result.suboptimality(0) <= 1e-6);

  oracle::DenseObjective dense;
  dense.X = data.means;
  dense.y.resize(60);
  for (Index i = 0; i < 60; ++i) {
    dense.y(i) = data.labels[static_cast<std::size_t>(i)] == 7 ? 1.0 : -1.0;
    dense.S.push_back(Matrix(data.stds.row(i).array().square().matrix().asDiagonal()));
  }
  dense.c = Vector::Constant(60, 1.0 / 60.0);
  dense.lam = 1.0 / (0.3 * 60.0);
  const auto value = static_cast<double>(
      dense.value(oracle::joined(model.result.model.coef.row(0).transpose(), model.result.model.intercept(0))));
  CHECK(model.result.objective(0) == doctest::Approx(value).epsilon(1e-12));
  CHECK(model.result.lower_bound(0) <= value * (1.0 + 1e-12));
}

TEST_CASE("errors as deviations, matrices and Gaussians, columns first or rows first, give one model") {
  const Data data(40, 3, 3);
  const UncertainSVC svc;
  const LinearClassifier model = svc.fit(data.means, data.stds, data.labels);
  const Eigen::MatrixXd by_columns = data.means;
  std::vector<Eigen::MatrixXd> covariances;
  for (Index i = 0; i < 40; ++i) covariances.emplace_back(data.stds.row(i).array().square().matrix().asDiagonal());
  Eigen::VectorXi labels(40);
  for (Index i = 0; i < 40; ++i) labels(i) = data.labels[static_cast<std::size_t>(i)];
  Matrix wide(40, 6);  // rows with something between them
  wide << data.means, data.stds;
  const LinearClassifier same[] = {svc.fit(by_columns, data.stds, labels),
                                   svc.fit(wide.leftCols(3), wide.rightCols(3), data.labels)};
  for (const LinearClassifier& other : same) CHECK(other.result.model.coef == model.result.model.coef);
  const LinearClassifier full = svc.fit(data.means, covariances, data.labels);
  CHECK((full.result.objective - model.result.objective).cwiseAbs().maxCoeff() < 2e-6);
  CHECK(full.predict(data.means) == model.predict(data.means));

  const LinearClassifier certain = svc.fit(data.means, data.labels);
  const LinearClassifier none = svc.fit(data.means, Matrix::Zero(40, 3), data.labels);
  CHECK((certain.result.objective - none.result.objective).cwiseAbs().maxCoeff() < 2e-6);
}

TEST_CASE("predictions are the class of the largest score, of two the second where it is above 0") {
  for (const int n_classes : {2, 3}) {
    const Data data(40, 3, n_classes);
    const LinearClassifier model = UncertainSVC().fit(data.means, data.stds, data.labels);
    const Matrix f = model.decision_function(data.means);
    const Matrix s = model.decision_std(data.stds);
    const Matrix& W = model.result.model.coef;
    REQUIRE(f.cols() == (n_classes == 2 ? 1 : 3));
    const std::vector<std::int64_t> labels = model.predict(data.means);
    int right = 0;
    for (Index i = 0; i < 40; ++i) {
      const auto at = static_cast<std::size_t>(i);
      std::size_t best = f(i, 0) > 0.0 ? 1 : 0;
      for (Index k = 0; k < f.cols(); ++k) {
        CHECK(f(i, k) == doctest::Approx(W.row(k).dot(data.means.row(i)) + model.result.model.intercept(k)));
        CHECK(s(i, k) == doctest::Approx(W.row(k).cwiseProduct(data.stds.row(i)).norm()));
        if (n_classes > 2 && f(i, k) > f(i, static_cast<Index>(best))) best = static_cast<std::size_t>(k);
      }
      CHECK(labels[at] == model.classes[best]);
      if (labels[at] == data.labels[at]) ++right;
    }
    CHECK(right > 25);
  }
}

TEST_CASE("a classifier that was saved predicts the same bits, and keeps C and loss") {
  const Data data(40, 3, 3);
  UncertainSVC svc;
  svc.C = 2.5;
  svc.loss = "expected_squared_hinge";
  const LinearClassifier model = svc.fit(data.means, data.stds, data.labels);
  model.save(temporary());
  const LinearClassifier loaded = LinearClassifier::load(temporary());
  CHECK(loaded.decision_function(data.means) == model.decision_function(data.means));
  CHECK(loaded.predict(data.means) == model.predict(data.means));
  CHECK(loaded.C == 2.5);
  CHECK(loaded.loss == svc.loss);
  CHECK(loaded.classes == model.classes);
  halosvm::SavedModel words;
  words.model = halosvm::LinearModel(1, 2);
  words.classes = {std::string("a"), std::string("b")};
  halosvm::save_model(words, temporary());
  CHECK(error_of([] { LinearClassifier::load(temporary()); }).find("path is of a model whose classes") == 0);
  std::filesystem::remove(temporary());
}

TEST_CASE("what cannot be fitted or predicted is refused by name") {
  Data data(8, 3, 2);
  UncertainSVC svc;
  const auto fit = [&] { return refused([&] { svc.fit(data.means, data.stds, data.labels); }); };
  CHECK(fit().empty());
  for (const double bad : {-1.0, 0.0, std::numeric_limits<double>::quiet_NaN(), halosvm::infinity}) {
    svc.C = bad;
    CHECK(fit() == "C");
  }
  svc = {};
  svc.loss = "none";
  CHECK(fit() == "loss");
  svc = {};
  data.stds(5, 1) = -0.5;
  CHECK(error_of([&] { svc.fit(data.means, data.stds, data.labels); }) ==
        "stds row 5, column 1 is -0.5; it must be >= 0 and finite");
  data.stds(5, 1) = 0.5;
  data.means(4, 2) = std::numeric_limits<double>::quiet_NaN();
  CHECK(error_of([&] { svc.fit(data.means, data.stds, data.labels); }) ==
        "means row 4, column 2 is nan; it must be finite");
  data.means(4, 2) = 0.0;
  const Matrix means = data.means;
  CHECK(refused([&] { svc.fit(means, data.stds.leftCols(2), data.labels); }) == "stds");
  CHECK(refused([&] { svc.fit(means, data.stds.topRows(7), data.labels); }) == "stds");
  CHECK(refused([&] { svc.fit(means, {0, 1, 1}); }) == "labels");
  CHECK(refused([&] { svc.fit(means, std::array<int, 8>{1, 1, 1, 1, 1, 1, 1, 1}); }) == "labels");
  CHECK(refused([&] { svc.fit(Matrix(0, 3), Labels{}); }) == "labels");
  std::vector<Eigen::MatrixXd> covariances(8, Eigen::MatrixXd::Identity(3, 3));
  covariances[6] = Eigen::MatrixXd::Identity(3, 2);
  CHECK(error_of([&] { svc.fit(means, covariances, data.labels); }) == "covariances row 6 has 2 columns, means has 3");
  covariances[6] = -Eigen::MatrixXd::Identity(3, 3);
  CHECK(error_of([&] { svc.fit(means, covariances, data.labels); }).find("covariances row 6 has the eigenvalue -1") ==
        0);
  const LinearClassifier model = svc.fit(means, data.labels);
  CHECK(refused([&] { model.predict(Matrix::Zero(2, 4)); }) == "X");
  CHECK(refused([&] { model.decision_std(-data.stds); }) == "stds");
  CHECK(refused([&] { LinearClassifier().predict(means); }) == "X");
}
