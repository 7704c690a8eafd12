/// \file
/// The text of a model file comes in, the record of its estimator goes out: the members that C++ programs predict with,
/// as they are written there. Whoever makes a machine of them sees to what goes together.
#pragma once

#include "halosvm/model/model_file.hpp"
#include "model/files.hpp"
#include "model/json_reader.hpp"
#include "model/stored_array.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace halosvm::record {

/// The members of an object by their names; of an estimator also those of its parameters that matter.
struct Record {
  std::string name;       ///< in messages; empty for the document
  std::size_t place = 0;  ///< of the object, for an estimator of its name
  std::map<std::string, std::string> texts;
  std::map<std::string, double> numbers;  ///< truth values are 0 and 1
  std::map<std::string, Array> arrays;
  std::map<std::string, std::unique_ptr<Record>> within;
  std::vector<Record> curves;
  std::vector<ClassLabel> classes;
  std::vector<std::string> feature_names;

  std::string text(const std::string& key) const { return texts.count(key) != 0 ? texts.at(key) : ""; }
  double number(const std::string& key, double otherwise = 0.0) const {
    return numbers.count(key) != 0 ? numbers.at(key) : otherwise;
  }
  // Members that must be there.
  Array& array(const JsonReader& reader, const std::string& key);
  double needed(const JsonReader& reader, const std::string& key) const;
  Record& at(const JsonReader& reader, const std::string& key);
  [[noreturn]] void fail(const JsonReader& reader, const std::string& what) const {
    reader.fail_at(place, name.empty() ? what : name + ": " + what);
  }
};

/// Reads a document. \param linear whether it is to hold a linear machine.
/// \throws std::invalid_argument with line and column, also for an estimator that nothing here predicts with.
Record read(JsonReader& reader, bool linear);

/// Whether an estimator is a linear machine, but for a TotalSVC with a kernel.
bool is_linear(std::string_view estimator);

/// Why labels cannot be those of the scores of a machine, or nothing.
std::string_view fault_of(const std::vector<ClassLabel>& classes);

/// The linear machine of a record.
SavedModel linear_machine(const JsonReader& reader, Record& record);

/// What a function makes of the text of a file; its complaints name the file.
template <class Read>
auto from_file(const std::string& path, const Read& read_text) {
  const std::string text = files::read(path);
  try {
    return read_text(text);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(path + ": " + error.what());
  }
}

}  // namespace halosvm::record
