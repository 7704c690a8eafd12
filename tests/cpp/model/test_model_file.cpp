#include "halosvm/model/model_file.hpp"
#include "oracle/mutations.hpp"
#include "oracle/random.hpp"
#include "oracle/errors.hpp"
#include "oracle/foreign_locale.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>

using halosvm::ClassLabel;
using halosvm::Index;
using halosvm::read_model;
using halosvm::SavedModel;
using halosvm::write_model;
using oracle::error_of;

namespace {

SavedModel random_machine(Index n_models, Index n_features, std::vector<ClassLabel> classes) {
  oracle::Random random(7);
  SavedModel saved;
  saved.model.coef = random.normal_matrix(n_models, n_features);
  saved.model.intercept = random.normal_vector(n_models);
  saved.classes = std::move(classes);
  saved.loss = "worst_case";
  return saved;
}

/// A document as Python writes it, with what C++ has no use for.
std::string document() {
  return R"({
 "format": "halosvm-model",
 "format_version": 1,
 "estimator": "UncertainSVC",
 "parameters": {"C": 0.5, "loss": "worst_case", "class_weight": {"pairs": [["no", 2.0]]}, "norm": {"number": "inf"}},
 "n_features": 2,
 "feature_names": ["a \"b\"", "\u00e9\ud83d\ude00"],
 "coef": [
  [0.1, -2.5e-3]
 ],
 "intercept": [5e-324],
 "classes": {"dtype": "<U3", "values": ["no", "yes"]},
 "fit": {"n_iter": 12, "status": "converged", "x": [true, false, null, [], {}]}
}
)";
}

std::string replaced(const std::string& old, const std::string& by) {
  std::string text = document();
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), by);
}

bool same(const SavedModel& a, const SavedModel& b) {
  return a.estimator == b.estimator && a.loss == b.loss && a.C == b.C && a.model.coef == b.model.coef &&
         a.model.intercept == b.model.intercept && a.classes == b.classes && a.feature_names == b.feature_names;
}

}  // namespace

TEST_CASE("what is read is what was written, to the last bit") {
  using Labels = std::vector<ClassLabel>;
  const auto of = [](const char* text) { return ClassLabel(std::string(text)); };
  for (const Labels& classes :
       {Labels{of("no"), of("yes \xC3\xA9\n\"\\")}, Labels{std::int64_t{-1}, std::int64_t{1}}, Labels{false, true},
        Labels{-0.5, 2.0}, Labels{of("a"), of("b"), of("c")}, Labels{std::int64_t{1}, 2.5, of("c"), true}}) {
    const SavedModel saved = random_machine(classes.size() == 2 ? 1 : static_cast<Index>(classes.size()), 5, classes);
    const SavedModel read = read_model(write_model(saved));
    CHECK(same(read, saved));
    for (std::size_t k = 0; k < classes.size(); ++k) CHECK(read.classes[k].index() == classes[k].index());
  }
  SavedModel values = random_machine(1, 3, {});
  values.loss.clear();
  values.estimator = "UncertainSVR";
  values.feature_names = {"a", "b", "c"};
  CHECK(same(read_model(write_model(values)), values));
}

TEST_CASE("every number survives, in every locale") {
  SavedModel saved = random_machine(1, 6, {false, true});
  saved.model.coef << 1.0 / 3.0, 5e-324, -std::numeric_limits<double>::max(), -0.0, 123456789012345680.0, 1e22;
  saved.model.intercept << 1234567.25;
  const std::string plain = write_model(saved);
  const oracle::InForeignLocale foreign;
  CHECK(write_model(saved) == plain);
  const SavedModel read = read_model(plain);
  CHECK(same(read, saved));
  CHECK(std::signbit(read.model.coef(0, 3)));
}

TEST_CASE("documents of Python are read, and what has no use here is left out") {
  const SavedModel read = read_model(document());
  CHECK(read.estimator == "UncertainSVC");
  CHECK(read.loss == "worst_case");
  CHECK(read.C == 0.5);
  CHECK(read.model.coef(0, 1) == -2.5e-3);
  CHECK(read.model.intercept(0) == 5e-324);
  CHECK(read.classes == std::vector<ClassLabel>{std::string("no"), std::string("yes")});
  CHECK(read.feature_names == std::vector<std::string>{"a \"b\"", "\xC3\xA9\xF0\x9F\x98\x80"});
  CHECK(same(read_model(replaced("\"format_version\": 1", "\"format_version\": 3")), read));
}

TEST_CASE("damage is told with line and column") {
  const auto error = [](const std::string& old, const std::string& by) {
    return error_of([&] { read_model(replaced(old, by)); });
  };
  CHECK(error("0.1", "NaN") == "model file line 9, column 4: expected a number");
  CHECK(error("0.1", "01") == "model file line 9, column 5: expected ']'");
  CHECK(error("0.1", "\"0.1\"") == "model file line 9, column 4: expected a number");
  CHECK(error("0.1", "1e999") == "model file line 9, column 4: 1e999 is beyond the largest number");
  CHECK(error("-2.5e-3]", "-2.5e-3], [1.0]") ==
        "model file line 9, column 19: coef has a row of 1 numbers, the first has 2");
  CHECK(error("\"format_version\": 1", "\"format_version\": 4") ==
        "model file line 3, column 20: format_version is 4; 1 and 3 can be read");
  CHECK(error("\"halosvm-model\"", "\"other\"") == "model file line 2, column 12: this is no model file");
  CHECK(error("\"estimator\": \"UncertainSVC\"", "\"estimator\": \"Pipeline\"") ==
        "model file line 4, column 15: Pipeline is no linear machine");
  CHECK(error("\"intercept\"", "\"coef\"") == "model file line 11, column 2: \"coef\" is there twice");
  CHECK(error("\"no\", \"yes\"", "\"no\"").find("1 classes do not go with 1 rows of coef") != std::string::npos);
  CHECK(error("\"no\", \"yes\"", "\"no\", \"no\"").find("two classes have the same label") != std::string::npos);
  CHECK(error("[5e-324]", "[]") == "model file line 11, column 15: intercept is empty");
  CHECK(error("[5e-324]", "[1.0, 2.0]").find("coef has 1 rows, intercept has 2") != std::string::npos);
  CHECK(error("\\ude00", "\\u0041").find("a surrogate has no pair") != std::string::npos);
  CHECK(error("[[\"no\", 2.0]]", std::string(100, '[')).find("nested more than 64 deep") != std::string::npos);
  CHECK(error("\"coef\"", "\"other\"").find("\"coef\" is missing") != std::string::npos);
  CHECK(error_of([] { read_model(document() + "{}"); }).find("something behind the document") != std::string::npos);
  CHECK(error_of([] { read_model(std::string(1000000, '[')); }).find("expected '{'") != std::string::npos);
  CHECK(error_of([] { read_model(""); }) == "model file line 1, column 1: the text ends too early");
}

TEST_CASE("every beginning of a document but the whole is refused") {
  const std::string text = document();
  const std::size_t last = text.find_last_of('}');
  for (std::size_t n = 0; n <= last; ++n) CHECK_THROWS_AS(read_model(text.substr(0, n)), std::invalid_argument);
  CHECK_NOTHROW(read_model(text.substr(0, last + 1)));
}

TEST_CASE("models that are none are not written") {
  const SavedModel good = random_machine(1, 2, {false, true});
  SavedModel bad = good;
  bad.model.coef(0, 1) = std::numeric_limits<double>::quiet_NaN();
  CHECK(error_of([&] { write_model(bad); }) == "model cannot be written: a coefficient is not finite");
  bad = good;
  bad.classes.emplace_back(std::int64_t{3});
  CHECK(error_of([&] { write_model(bad); }) == "model cannot be written: 3 classes do not go with 1 rows of coef");
  bad = good;
  bad.feature_names = {"a"};
  CHECK(error_of([&] { write_model(bad); }) ==
        "model cannot be written: 1 feature_names do not go with 2 columns of coef");
  bad = good;
  bad.model = halosvm::LinearModel(3, 2);
  bad.classes = {std::int64_t{2}, std::int64_t{10}, std::int64_t{3}};
  CHECK(error_of([&] { write_model(bad); }) ==
        "model cannot be written: classes do not ascend; scores belong to classes in ascending order");
  bad = good;
  bad.feature_names = {"a", "\xC3"};
  CHECK(error_of([&] { write_model(bad); }).find("text is not UTF-8") == 0);
  bad = good;
  bad.estimator = "Pipeline";
  CHECK(error_of([&] { write_model(bad); }) == "model cannot be written: there is no linear machine Pipeline");
}

TEST_CASE("files are replaced as a whole, and absent ones told") {
  const auto folder = std::filesystem::temp_directory_path() / "halosvm_model_files";
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "model.json").string();
  const SavedModel saved = random_machine(1, 2, {false, true});
  {
    std::ofstream(path) << "something else";
  }
  halosvm::save_model(saved, path);
  CHECK(same(halosvm::load_model(path), saved));
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  std::filesystem::remove_all(folder);
  CHECK_THROWS_AS(halosvm::load_model(path), std::runtime_error);
  CHECK_THROWS_AS(halosvm::save_model(saved, path), std::runtime_error);
}

TEST_CASE("mutated files give an error with its place, or a finite model") {
  const std::string texts[] = {document(), write_model(random_machine(3, 4, {false, std::int64_t{2}, 3.5}))};
  int n_refused = 0;
  const int count = oracle::for_mutations(texts, [&](const std::string& text) {
    try {
      const SavedModel read = read_model(text);
      CHECK(read.model.coef.allFinite());
      CHECK(read.model.intercept.allFinite());
      CHECK(read.model.intercept.size() == read.model.coef.rows());
    } catch (const std::invalid_argument& error) {
      ++n_refused;
      CHECK(std::string(error.what()).find("model file line ") == 0);
    }
  });
  CHECK(n_refused > count / 2);
}
