// Model files: a fitted linear machine comes in, JSON text goes out, and back.

#include "halosvm/model/model_file.hpp"

#include "halosvm/core/check.hpp"
#include "model/numbers.hpp"
#include "model/record.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halosvm {
namespace {

constexpr const char* format_name = "halosvm-model";

// ---- what goes together -----------------------------------------------------------------------------------------

/// What is wrong with a model, or nothing.
std::string fault_of(const SavedModel& saved) {
  const Index k = saved.model.coef.rows();
  const Index d = saved.model.coef.cols();
  const auto n_classes = static_cast<Index>(saved.classes.size());
  const auto n_names = static_cast<Index>(saved.feature_names.size());
  if (!record::is_linear(saved.estimator)) return "there is no linear machine " + saved.estimator;
  if (k == 0 || d == 0) return "coef is empty";
  if (saved.model.intercept.size() != k) {
    return "coef has " + std::to_string(k) + " rows, intercept has " + std::to_string(saved.model.intercept.size());
  }
  if (!saved.model.coef.allFinite() || !saved.model.intercept.allFinite()) return "a coefficient is not finite";
  const bool of_values = saved.estimator == "UncertainSVR";
  if (of_values ? (n_classes != 0 || k != 1) : (n_classes < 2 || k != (n_classes == 2 ? 1 : n_classes))) {
    return std::to_string(n_classes) + " classes do not go with " + std::to_string(k) + " rows of coef";
  }
  const std::string_view of_classes = record::fault_of(saved.classes);
  if (!of_classes.empty()) return std::string(of_classes);
  if (n_names != 0 && n_names != d) {
    return std::to_string(n_names) + " feature_names do not go with " + std::to_string(d) + " columns of coef";
  }
  return "";
}

// ---- writing ----------------------------------------------------------------------------------------------------

/// The length of the UTF-8 sequence at a place, 0 if there is none.
std::size_t utf8_length(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U; };
  const unsigned lead = byte(at);
  if (lead < 0x80U) return 1;
  const std::size_t length = lead < 0xC2U || lead > 0xF4U ? 0 : (lead < 0xE0U ? 2 : (lead < 0xF0U ? 3 : 4));
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(at + k) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned second = byte(at + 1);
  const bool bad = (lead == 0xE0U && second < 0xA0U) || (lead == 0xEDU && second > 0x9FU) ||
                   (lead == 0xF0U && second < 0x90U) || (lead == 0xF4U && second > 0x8FU);
  return bad ? 0 : length;
}

std::string quoted(const std::string& text, std::size_t* n_characters = nullptr) {
  std::string out = "\"";
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    const std::size_t length = utf8_length(text, at);
    check::require(length != 0, "text", "is not UTF-8: " + text);
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20U) {
      constexpr char hexadecimal[] = "0123456789abcdef";
      out += c < 0x10U ? "\\u000" : "\\u001";
      out += hexadecimal[c % 16U];
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out.append(text, at, length);
    }
    at += length;
  }
  if (n_characters != nullptr) *n_characters = count;
  return out + '"';
}

template <class Range, class TextOf>
std::string listed(const Range& range, const TextOf& text_of, const char* separator = ", ") {
  std::string out = "[";
  for (const auto& each : range) {
    if (out.size() > 1) out += separator;
    out += text_of(each);
  }
  return out + ']';
}

std::string row_text(const double* values, Index count) {
  std::string out = "[";
  for (Index j = 0; j < count; ++j) out += (j > 0 ? ", " : "") + number_text(values[j]);
  return out + ']';
}

/// Classes with the type that NumPy has for them.
std::string classes_text(const std::vector<ClassLabel>& classes) {
  bool alike = true;
  std::size_t longest = 1;
  const auto text_of = [&](const ClassLabel& label) -> std::string {
    alike = alike && label.index() == classes.front().index();
    if (const auto* flag = std::get_if<bool>(&label)) return *flag ? "true" : "false";
    if (const auto* whole = std::get_if<std::int64_t>(&label)) return std::to_string(*whole);
    if (const auto* number = std::get_if<double>(&label)) {
      check::require(std::isfinite(*number), "classes", "hold a number that is not finite");
      return number_text(*number);
    }
    std::size_t length = 0;
    std::string text = quoted(std::get<std::string>(label), &length);
    longest = std::max(longest, length);
    return text;
  };
  const std::string values = listed(classes, text_of);
  const std::string types[] = {"|b1", "<i8", "<f8", "<U" + std::to_string(longest)};
  const std::string type = alike ? types[classes.front().index()] : "object";
  return R"({"dtype": ")" + type + R"(", "values": )" + values + '}';
}

}  // namespace

std::string write_model(const SavedModel& saved) {
  const std::string fault = fault_of(saved);
  check::require(fault.empty(), "model", "cannot be written: " + fault);
  check::require(std::isfinite(saved.C), "C", "is not finite");
  const Matrix& coef = saved.model.coef;
  std::string out = "{\n \"format\": " + quoted(format_name) + ",\n \"format_version\": 1,\n \"estimator\": ";
  out += quoted(saved.estimator) + ",\n \"parameters\": {\"C\": " + number_text(saved.C);
  if (!saved.loss.empty()) out += ", \"loss\": " + quoted(saved.loss);
  out += "},\n \"feature_names\": ";
  out += saved.feature_names.empty() ? "null" : listed(saved.feature_names, [](const auto& n) { return quoted(n); });
  out += ",\n \"coef\": [";
  for (Index k = 0; k < coef.rows(); ++k) out += (k > 0 ? ",\n  " : "\n  ") + row_text(coef.row(k).data(), coef.cols());
  out += "\n ],\n \"intercept\": " + row_text(saved.model.intercept.data(), saved.model.intercept.size());
  if (!saved.classes.empty()) out += ",\n \"classes\": " + classes_text(saved.classes);
  return out + ",\n \"fit\": {}\n}\n";
}

SavedModel record::linear_machine(const JsonReader& reader, Record& record) {
  if (record.arrays.count("dual_coef") != 0) {
    record.fail(reader, record.text("estimator") + " has a kernel here; Machine::load reads it");
  }
  const auto matrix = [&](const char* key, std::size_t n_dimensions) {
    const Array& array = record.array(reader, key);
    if (array.shape.size() != n_dimensions || array.numbers.empty()) {
      reader.fail_at(array.place, array.name + " is no " + (n_dimensions == 1 ? "list" : "matrix") + " of numbers");
    }
    return ConstMatrixMap(array.numbers.data(), array.shape[0], n_dimensions == 1 ? 1 : array.shape[1]);
  };
  SavedModel saved;
  saved.estimator = record.text("estimator");
  saved.loss = record.text("loss");
  saved.C = record.number("C", saved.C);
  saved.model.coef = matrix("coef", 2);
  saved.model.intercept = matrix("intercept", 1);
  saved.classes = std::move(record.classes);
  saved.feature_names = std::move(record.feature_names);
  const std::string fault = halosvm::fault_of(saved);
  if (!fault.empty()) record.fail(reader, fault);
  return saved;
}

SavedModel read_model(std::string_view text) {
  JsonReader reader(text);
  record::Record record = record::read(reader, true);
  return record::linear_machine(reader, record);
}

void save_model(const SavedModel& saved, const std::string& path) { files::write(path, write_model(saved)); }

SavedModel load_model(const std::string& path) { return record::from_file(path, read_model); }

}  // namespace halosvm
