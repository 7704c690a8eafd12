#include "halosvm/model/machine.hpp"
#include "oracle/errors.hpp"
#include "oracle/mutations.hpp"
#include "oracle/random.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

using halosvm::ClassLabel;
using halosvm::Examples;
using halosvm::Index;
using halosvm::Machine;
using halosvm::Matrix;
using halosvm::Vector;
using oracle::error_of;

namespace {

constexpr double gamma = 0.5;

std::string row_text(const double* values, Index count) {
  std::string out = "[";
  for (Index j = 0; j < count; ++j) out += (j > 0 ? ", " : "") + std::to_string(values[j]);
  return out + ']';
}

std::string text_of(const Matrix& A) {
  std::string out = "[";
  for (Index i = 0; i < A.rows(); ++i) out += (i > 0 ? ", " : "") + row_text(A.row(i).data(), A.cols());
  return out + ']';
}

/// As it is read from six decimals.
Matrix rounded(const Matrix& A) { return (A.array() * 1e4).round() / 1e4; }

/// Support examples with independent errors, of classes 0 and 1, or 0, 1 and 2, three of each.
struct Support {
  explicit Support(Index n_classes = 2) : n_classes(n_classes) {
    oracle::Random random(3);
    means = rounded(random.normal_matrix(3 * n_classes, 2));
    variances = rounded(random.normal_matrix(3 * n_classes, 2).cwiseAbs2());
    dual_coef = rounded(random.normal_matrix(n_classes - 1, 3 * n_classes));
    intercept = rounded(random.normal_matrix(1, n_classes * (n_classes - 1) / 2));
    X = rounded(random.normal_matrix(5, 2));
    stds = rounded(random.normal_matrix(5, 2).cwiseAbs());
  }
  Index n_classes;
  Matrix means, variances, dual_coef, intercept, X, stds;

  /// E k(x, z_j) by the integral over each feature, which is a normal density.
  double kernel(const Matrix& x, const Matrix& x_variance, Index j) const {
    double value = 1.0;
    for (Index k = 0; k < 2; ++k) {
      const double width = 1.0 + 2.0 * gamma * (x_variance(k) + variances(j, k));
      value *= std::exp(-gamma * std::pow(x(k) - means(j, k), 2) / width) / std::sqrt(width);
    }
    return value;
  }

  std::string kernel_text =
      R"({"kind": "rbf", "gamma": [0.5], "degree": 3, "coef0": 0.0, "normalize": false, "tau": null})";
  std::string covariances() const {
    return R"({"kind": "diagonal", "shape": [)" + std::to_string(means.rows()) + R"(, 2], "values": )" +
           text_of(variances) + '}';
  }
  /// The members of a record.
  std::string record(const std::string& parameters = "") const {
    std::string counts = "3";
    std::string labels = "0";
    for (Index k = 1; k < n_classes; ++k) {
      counts += ", 3";
      labels += ", " + std::to_string(k);
    }
    return R"("estimator": "UncertainKernelSVC", "parameters": {"C": {"number": "inf"}, "kernel": "rbf")" + parameters +
           R"(}, "n_features": 2, "feature_names": ["a", "b"], "classes": {"dtype": "<i8", "values": [)" + labels +
           R"(]}, "n_support": {"dtype": "<i8", "shape": [)" + std::to_string(n_classes) + R"(], "values": [)" +
           counts + "]},\n \"dual_coef\": " + text_of(dual_coef) +
           ",\n \"intercept\": " + row_text(intercept.data(), intercept.size()) + ",\n \"kernel\": " + kernel_text +
           ",\n \"support_gaussians\": {\"mean\": " + text_of(means) + ", \"covariances\": " + covariances() +
           "},\n \"fit\": {\"n_iter\": 3}";
  }
};

std::string document(const std::string& record) {
  return "{\"format\": \"halosvm-model\", \"format_version\": 3,\n " + record + "\n}\n";
}

std::string calibrated(const std::string& record, const std::string& labels, const std::string& method,
                       const std::string& curves) {
  return document(R"("estimator": "UncertainCalibratedClassifier", "parameters": {"method": ")" + method +
                  R"(", "cv": null}, "classes": {"dtype": "<i8", "values": [)" + labels + "]},\n \"machine\": {" +
                  record + "},\n \"curves\": [" + curves + ']');
}

std::string platt(double slope, double offset) {
  return R"({"estimator": "PlattScaling", "parameters": {}, "slope": )" + std::to_string(slope) + R"(, "offset": )" +
         std::to_string(offset) + '}';
}

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), by);
}

double largest(const Matrix& difference) { return difference.cwiseAbs().maxCoeff(); }

}  // namespace

TEST_CASE("scores are sums of expected kernels, by the closed form of one feature after the other") {
  const Support support;
  const Machine machine = Machine::read(document(support.record()));
  CHECK(machine.estimator == "UncertainKernelSVC");
  CHECK(machine.classes == std::vector<ClassLabel>{std::int64_t{0}, std::int64_t{1}});
  CHECK(machine.feature_names == std::vector<std::string>{"a", "b"});
  for (const double scale : {0.0, 1.0}) {
    const Matrix stds = scale * support.stds;
    const Matrix scores = machine.decision_function({support.X, stds});
    const std::vector<ClassLabel> labels = machine.predict({support.X, stds});
    for (Index i = 0; i < 5; ++i) {
      double f = support.intercept(0);
      for (Index j = 0; j < 6; ++j) {
        f += support.dual_coef(0, j) * support.kernel(support.X.row(i), stds.row(i).cwiseAbs2(), j);
      }
      CHECK(std::abs(scores(i, 0) - f) < 1e-13);
      CHECK(labels[static_cast<std::size_t>(i)] == ClassLabel(std::int64_t{f > 0.0 ? 1 : 0}));
    }
  }
  CHECK(machine.decision_function(support.X) == machine.decision_function(Eigen::MatrixXd(support.X)));
  CHECK(machine.decision_std(support.X) == Matrix::Zero(5, 1));
}

TEST_CASE("of three classes each pair has its own coefficients, and most pairs won decide") {
  const Support support(3);
  const Machine votes = Machine::read(document(support.record()));
  const Machine pairs = Machine::read(document(support.record(R"(, "decision_function_shape": "ovo")")));
  const Matrix f = pairs.decision_function(support.X);
  const Matrix v = votes.decision_function(support.X);
  REQUIRE(f.cols() == 3);
  for (Index i = 0; i < 5; ++i) {
    const auto sum = [&](Index of, Index row) {
      double total = 0.0;
      for (Index j = 3 * of; j < 3 * of + 3; ++j) {
        total += support.dual_coef(row, j) * support.kernel(support.X.row(i), Matrix::Zero(1, 2), j);
      }
      return total;
    };
    const double expected[] = {sum(0, 0) + sum(1, 0), sum(0, 1) + sum(2, 0), sum(1, 1) + sum(2, 1)};
    double wins[] = {0.0, 0.0, 0.0};
    double by[] = {0.0, 0.0, 0.0};
    const int firsts[] = {0, 0, 1};
    const int seconds[] = {1, 2, 2};
    for (int p = 0; p < 3; ++p) {
      const double value = expected[p] + support.intercept(p);
      CHECK(std::abs(f(i, p) - value) < 1e-13);
      wins[value < 0.0 ? seconds[p] : firsts[p]] += 1.0;
      by[firsts[p]] += value;
      by[seconds[p]] -= value;
    }
    int best = 0;
    for (int k = 0; k < 3; ++k) {
      const double value = wins[k] + by[k] / (3.0 * (std::abs(by[k]) + 1.0));
      CHECK(std::abs(v(i, k) - value) < 1e-13);
      if (value > wins[best] + by[best] / (3.0 * (std::abs(by[best]) + 1.0))) best = k;
    }
    CHECK(votes.predict(support.X)[static_cast<std::size_t>(i)] == ClassLabel(std::int64_t{best}));
  }
}

TEST_CASE("arrays are the same in every form that files have") {
  const Support support;
  const std::string plain = document(support.record());
  const Matrix expected = Machine::read(plain).decision_function(support.X);
  const std::string values = "\"values\": " + text_of(support.variances);
  const auto with = [&](const std::string& form) {
    return Machine::read(replaced(plain, values, "\"values\": " + form)).decision_function(support.X);
  };
  std::string flat;
  std::string bytes;
  for (Index k = 0; k < support.variances.size(); ++k) {
    const double value = support.variances.data()[k];
    flat += (k > 0 ? ", " : "") + std::to_string(value);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    for (int b = 0; b < 8; ++b) bytes.push_back(static_cast<char>((bits >> (8 * b)) & 0xFFU));
  }
  constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string encoded;  // 96 bytes, which need no padding
  for (std::size_t k = 0; k < bytes.size(); k += 3) {
    const auto byte = [&](std::size_t b) { return static_cast<unsigned>(static_cast<unsigned char>(bytes[k + b])); };
    const unsigned bits = byte(0) << 16U | byte(1) << 8U | byte(2);
    for (const unsigned shift : {18U, 12U, 6U, 0U}) encoded.push_back(alphabet[(bits >> shift) & 63U]);
  }
  const Matrix turned = support.variances.transpose();
  CHECK(with(R"({"values": [)" + flat + R"(], "shape": [6, 2], "dtype": "<f8"})") == expected);
  CHECK(with(R"({"dtype": "<f8", "shape": [6, 2], "base64": ")" + encoded + "\"}") == expected);
  CHECK(with("{\"columns\": " + text_of(turned) + "}") == expected);
  CHECK(largest(with(R"({"dtype": "<f4", "shape": [6, 2], "values": [)" + flat + "]}") - expected) < 1e-6);
  const auto error = [&](const std::string& form) {
    const std::string text = error_of([&] { with(form); });
    return text.substr(text.find(": ") + 2);
  };
  const std::string name = "support_gaussians.covariances.values";
  CHECK(error(R"({"dtype": "<f8", "shape": [6, 2], "base64": "AA=A"})") == name + " is not base64");
  CHECK(error(R"({"dtype": "<f8", "shape": [6, 2], "base64": "AAAA"})") == name + " has a part of a number");
  CHECK(error(R"({"dtype": "<f8", "shape": [1], "base64": "AAAAAAAA8H8="})") ==
        name + " holds a number that is not finite");
  CHECK(error(R"({"dtype": "<f8", "shape": [4294967296, 4294967296], "values": []})") ==
        name + " has 0 numbers, its shape has others");
  CHECK(error(R"({"dtype": "<f8", "shape": [6, 3], "values": [1.0]})") ==
        name + " has 1 numbers, its shape has others");
  CHECK(error(R"({"dtype": "<f8", "shape": [1, 1], "values": [1.0]})") == name + " has shape (1, 1), expected (6, 2)");
  CHECK(error(R"({"dtype": "<i8", "shape": [1, 1], "values": [1.5]})") == name + " holds 1.5, which is no integer");
  CHECK(error(R"({"dtype": "|b1", "shape": [1], "values": []})") ==
        name + " has numbers of type \"|b1\"; <f8, <f4, <i8 and <i4 can be read");
  CHECK(error("[[1.0], [[2.0]]]") == name + " has rows of different depths");
  CHECK(error("[[1.0], [2.0, 3.0]]") == name + " has a row of 2 numbers, the first has 1");
}

TEST_CASE("standard deviations of quadratic scores are those of the polynomial, by Gauss's nodes") {
  Support support;
  // Of the eighth degree in x, for which five nodes a feature are exact.
  constexpr double nodes[] = {-2.8569700138728056, -1.3556261799742659, 0.0, 1.3556261799742659, 2.8569700138728056};
  constexpr double weights[] = {0.011257411327720689, 0.22207592200561264, 0.53333333333333333, 0.22207592200561264,
                                0.011257411327720689};
  for (const int degree : {1, 2}) {
    support.kernel_text = R"({"kind": "poly", "gamma": [0.5, 2.0], "degree": )" + std::to_string(degree) +
                          R"(, "coef0": 0.75, "normalize": false, "tau": null})";
    const Machine machine = Machine::read(document(support.record()));
    const Matrix std = machine.decision_std({support.X, support.stds});
    for (Index i = 0; i < 5; ++i) {
      double moments[] = {0.0, 0.0};
      for (int a = 0; a < 5; ++a) {
        for (int b = 0; b < 5; ++b) {
          Matrix x = support.X.row(i);
          x(0) += nodes[a] * support.stds(i, 0);
          x(1) += nodes[b] * support.stds(i, 1);
          const double f = machine.decision_function(x)(0, 0);
          moments[0] += weights[a] * weights[b] * f;
          moments[1] += weights[a] * weights[b] * f * f;
        }
      }
      CHECK(std(i, 0) == doctest::Approx(std::sqrt(moments[1] - moments[0] * moments[0])).epsilon(1e-9));
    }
  }
}

TEST_CASE("probabilities are the curves of scores, expected over their errors") {
  const Support support;
  const Examples uncertain(support.X, support.stds);
  const Machine machine = Machine::read(calibrated(support.record(), "0, 1", "sigmoid", platt(-2.0, 0.25)));
  const halosvm::PlattScaling curve{-2.0, 0.25};
  const Matrix f = machine.decision_function(uncertain);
  const Matrix s = machine.decision_std(uncertain);
  const Matrix p = machine.predict_proba(uncertain);
  const Matrix certain = machine.predict_proba(support.X);
  for (Index i = 0; i < 5; ++i) {
    CHECK(p(i, 1) == curve.expected_probability(f(i, 0), s(i, 0)));
    CHECK(p(i, 0) == 1.0 - p(i, 1));
    CHECK(certain(i, 1) ==
          doctest::Approx(curve.probability(machine.decision_function(support.X)(i, 0))).epsilon(1e-14));
    CHECK(machine.predict(uncertain)[static_cast<std::size_t>(i)] == ClassLabel(std::int64_t{p(i, 1) > 0.5}));
  }
  const Support three(3);
  const std::string curves = platt(-1.0, 0.5) + ", " + platt(-2.0, 0.0) + ", " + platt(-0.5, -0.5);
  const Machine several = Machine::read(calibrated(three.record(), "0, 1, 2", "sigmoid", curves));
  const Machine softmax =
      Machine::read(calibrated(three.record(), "0, 1, 2", "temperature",
                               R"({"estimator": "Temperature", "parameters": {}, "temperature": 0.5})"));
  const Matrix v = several.decision_function(three.X);
  for (Index i = 0; i < 5; ++i) {
    const double each[] = {1.0 / (1.0 + std::exp(-v(i, 0) + 0.5)), 1.0 / (1.0 + std::exp(-2.0 * v(i, 1))),
                           1.0 / (1.0 + std::exp(-0.5 * v(i, 2) - 0.5))};
    for (Index k = 0; k < 3; ++k) {
      CHECK(std::abs(several.predict_proba(three.X)(i, k) - each[k] / (each[0] + each[1] + each[2])) < 1e-14);
      const double total = std::exp(2.0 * v(i, 0)) + std::exp(2.0 * v(i, 1)) + std::exp(2.0 * v(i, 2));
      CHECK(std::abs(softmax.predict_proba(three.X)(i, k) - std::exp(2.0 * v(i, k)) / total) < 1e-14);
    }
  }
  CHECK(error_of([&] { several.predict_proba({three.X, three.stds}); }) ==
        "X has errors, of which more than two classes have no probabilities here");
}

TEST_CASE("a rising curve interpolates, and its expectation is the integral over the errors") {
  halosvm::IsotonicCurve curve;
  curve.at = Vector::LinSpaced(4, -1.0, 2.0);
  curve.at(2) = 0.0005;  // next to 0, a piece much narrower than the law
  curve.heights = (Vector(4) << 0.1, 0.3, 0.6, 0.9).finished();
  CHECK(curve.expected_probability(-5.0, 0.0) == 0.1);
  CHECK(curve.expected_probability(5.0, 0.0) == 0.9);
  CHECK(curve.expected_probability(-0.5, 0.0) == doctest::Approx(0.2));
  CHECK(curve.expected_probability(0.0, 0.0) == 0.3);
  for (const double mean : {-1.5, 0.0, 0.7}) {
    for (const double std : {0.2, 1.0}) {
      double sum = 0.0;  // by the trapezoidal rule, whose error in a step is its square times the change of slope
      constexpr int n = 400000;
      const double step = 16.0 / n;
      for (int k = 0; k <= n; ++k) {
        const double z = -8.0 + step * k;
        sum += step * std::exp(-0.5 * z * z) / std::sqrt(2.0 * std::acos(-1.0)) *
               curve.expected_probability(mean + std * z, 0.0);
      }
      CHECK(std::abs(curve.expected_probability(mean, std) - sum) < 1e-7);
    }
  }
}

TEST_CASE("what is no machine here is told with the way to go") {
  const std::string text = document(Support().record());
  CHECK(error_of([&] { halosvm::read_model(text); }) ==
        "model file line 2, column 15: UncertainKernelSVC is no linear machine; Machine::load reads it");
  CHECK(error_of([&] { Machine::read(replaced(text, "UncertainKernelSVC", "Pipeline")); }) ==
        "model file line 2, column 15: Pipeline is no machine that C++ programs read");
  const std::string path = (std::filesystem::temp_directory_path() / "halosvm_machine.json").string();
  std::ofstream(path) << text;
  CHECK(Machine::load(path).estimator == "UncertainKernelSVC");
  CHECK(error_of([&] { halosvm::load_model(path); }).find(path + ": model file line 2, column 15: ") == 0);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(Machine::load(path), std::runtime_error);
  halosvm::SavedModel saved;
  saved.model = halosvm::LinearModel(1, 2);
  saved.model.coef << 1.0, -2.0;
  saved.estimator = "UncertainSVR";
  const Machine values = Machine::read(halosvm::write_model(saved));
  const Matrix X = Matrix::Ones(3, 2);
  CHECK(values.decision_function(X) == Matrix::Constant(3, 1, -1.0));
  CHECK(error_of([&] { values.predict(X); }) == "X is to be classified by UncertainSVR, whose scores are values");
  CHECK(error_of([&] { values.predict_proba(X); }) ==
        "X is to get probabilities by UncertainSVR, which is not calibrated");
  CHECK(error_of([&] { values.decision_function(Matrix::Ones(3, 4)); }) == "X has 4 columns, coef has 2");
}

TEST_CASE("parts that do not go together are told with place and member") {
  const std::string text = document(Support().record());
  const auto error = [&](const std::string& old, const std::string& by) {
    const std::string message = error_of([&] { Machine::read(replaced(text, old, by)); });
    CHECK(message.find("model file line ") == 0);
    return message.substr(message.find(": ") + 2);
  };
  CHECK(error("\"values\": [0, 1]", "\"values\": [0, 0]") == "two classes have the same label");
  CHECK(error("\"values\": [0, 1]", "\"values\": [0, 1, 2]") == "dual_coef has shape (1, 6), expected (2, 6)");
  CHECK(error("[3, 3]", "[3, 4]") == "n_support is of other examples than dual_coef");
  CHECK(error("[3, 3]", "[3, 2]") == "n_support is of fewer examples than dual_coef");
  CHECK(error("[\"a\", \"b\"]", "[\"a\"]") == "1 feature_names do not go with 2 features");
  CHECK(error("\"rbf\", \"gamma\"", "\"cosine\", \"gamma\"") == "kernel: there is no kernel \"cosine\"");
  CHECK(error("\"rbf\", \"gamma\"", "\"precomputed\", \"gamma\"") ==
        "kernel: is precomputed: such a machine takes no features");
  CHECK(error("[0.5]", "[0.5, 1.0, 2.0]").find("support_gaussians: gamma has 3 features, X has 2") == 0);
  CHECK(error("[0.5]", "[-0.5]").find("support_gaussians: gamma is -0.5") == 0);
  CHECK(error("\"tau\": null", "\"tau\": 0") == "kernel: tau is 0; it must be positive");
  CHECK(error("\"kind\": \"diagonal\"", "\"kind\": \"round\"") ==
        "support_gaussians.covariances: there is no kind of covariances \"round\"");
  CHECK(error("\"kind\": \"diagonal\"", "\"kind\": \"full\"").find("expected (6, 2, 2)") != std::string::npos);
  CHECK(error("\"covariances\"", "\"other\"") == "support_gaussians: \"covariances\" is missing");
  CHECK(error("\"kernel\": {", "\"other\": {") == "\"kernel\" is missing");
  const Support support;
  const std::string variance = std::to_string(support.variances(0, 0));
  CHECK(error("\"values\": [[" + variance, "\"values\": [[-" + variance).find("support_gaussians: ") == 0);
  const std::string twice = calibrated(support.record(), "0, 1", "sigmoid", platt(-1.0, 0.0) + ", " + platt(-1.0, 0.0));
  CHECK(error_of([&] { Machine::read(twice); }).find("2 curves do not go with 2 classes") != std::string::npos);
  const std::string other = calibrated(support.record(), "0, 2", "sigmoid", platt(-1.0, 0.0));
  CHECK(error_of([&] { Machine::read(other); }).find("classes are not those of the machine") != std::string::npos);
  const std::string nameless = replaced(other, "\"estimator\": \"UncertainKernelSVC\", ", "");
  CHECK(error_of([&] { Machine::read(nameless); }).find("machine: \"estimator\" is missing") != std::string::npos);
  const std::string wrong = calibrated(support.record(), "0, 1", "isotonic", platt(-1.0, 0.0));
  CHECK(error_of([&] { Machine::read(wrong); }).find("\"PlattScaling\" does not go with method") != std::string::npos);
}

TEST_CASE("every beginning of a kernel machine's file but the whole is refused") {
  const std::string text = calibrated(Support().record(), "0, 1", "sigmoid", platt(-2.0, 0.25));
  const std::size_t last = text.find_last_of('}');
  for (std::size_t n = 0; n <= last; ++n) CHECK_THROWS_AS(Machine::read(text.substr(0, n)), std::invalid_argument);
  CHECK_NOTHROW(Machine::read(text));
}

TEST_CASE("mutated files of kernel machines give an error with its place, or a machine that predicts") {
  const Support two;
  const Support three(3);
  const std::string diagonal = two.covariances();
  const auto with = [&](const std::string& covariances) {
    return document(replaced(two.record(), diagonal, covariances));
  };
  const std::string isotonic =
      R"({"estimator": "IsotonicCurve", "parameters": {}, "at": [-1.0, 0.5, 2.0], "heights": [0.0, 0.25, 1.0]})";
  const std::string offsets = R"("offsets": {"dtype": "<i8", "shape": [7], "values": [0, 1, 1, 2, 3, 3, 4]})";
  // Components 0, 1, ..., 5 of as many mixtures, and the same weights.
  const std::string ends = R"("offsets": {"dtype": "<i4", "shape": [7], "base64": )"
                           R"("AAAAAAEAAAACAAAAAwAAAAQAAAAFAAAABgAAAA=="})";
  const std::string weights = R"("weights": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], )";
  std::string matrices = "[[[1.0, 0.25], [0.25, 1.0]]";
  for (int i = 1; i < 6; ++i) matrices += ", [[1.0, 0.25], [0.25, 1.0]]";
  matrices += ']';
  const std::string mean = "\"mean\": " + text_of(two.means) + ", \"covariances\": " + diagonal;
  const std::string texts[] = {
      document(two.record()),
      calibrated(three.record(), "0, 1, 2", "sigmoid",
                 platt(-1.0, 0.5) + ", " + platt(-2.0, 0.0) + ", " + platt(-1.0, 0.0)),
      calibrated(two.record(), "0, 1", "isotonic", isotonic),
      with(R"({"kind": "low_rank", "shape": [6, 2], "values": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], )" + offsets +
           '}'),
      with(R"({"kind": "full", "shape": [6, 2], "values": )" + matrices + '}'),
      with(R"({"kind": "isotropic", "shape": [6, 2], "squared": true, "values": [1, 2, 3, 1, 2, 3]})"),
      document(replaced(two.record(), mean, "\"components\": {" + mean + "}, " + weights + ends))};
  for (const std::string& text : texts) CHECK(error_of([&] { Machine::read(text); }) == "");
  int n_refused = 0;
  const int count = oracle::for_mutations(texts, [&](const std::string& text) {
    try {
      const Machine machine = Machine::read(text);
      const auto* linear = std::get_if<halosvm::LinearModel>(&machine.model);
      const Index d =
          linear != nullptr ? linear->coef.cols() : std::get<halosvm::KernelModel>(machine.model).support->n_features();
      try {
        CHECK(machine.decision_function(Matrix::Ones(2, d)).allFinite());
        if (!machine.curves.empty()) CHECK(machine.predict_proba(Matrix::Ones(2, d)).rows() == 2);
      } catch (const std::invalid_argument& error) {
        CHECK(std::string(error.what()).find("overflows") != std::string::npos);
      }
    } catch (const std::invalid_argument& error) {
      ++n_refused;
      CHECK(std::string(error.what()).find("model file line ") == 0);
    }
  });
  CHECK(n_refused > count / 2);
}
