/// \file
/// Model files: a fitted linear machine comes in, the JSON text that the Python package reads too goes out, and back.
/// Numbers keep their last bit, whatever the locale.
#pragma once

#include "halosvm/model/linear_model.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// What examples of one class are called.
using ClassLabel = std::variant<bool, std::int64_t, double, std::string>;

/// A linear machine as model files hold it. What else Python writes into them is left out.
struct SavedModel {
  std::string estimator = "UncertainSVC";  ///< or UncertainSVR, SafeSVC, TotalSVC
  std::string loss;                 ///< its parameter of this name; empty for its default, and for machines without one
  double C = 1.0;                   ///< likewise
  LinearModel model;                ///< one score for two classes or for values, else one for each class
  std::vector<ClassLabel> classes;  ///< ascending, the second is f > 0; empty for UncertainSVR
  std::vector<std::string> feature_names;  ///< one for each feature, or none
};

/// The text of a model file.
/// \throws std::invalid_argument when the parts do not go together, a number is not finite, or a text is not UTF-8.
std::string write_model(const SavedModel& saved);

/// Reads the text of a model file, format version 1, or 3 of a linear machine.
/// \throws std::invalid_argument with line and column for text that is no model, or is of a later version, or damaged.
SavedModel read_model(std::string_view text);

/// Writes a model file beside its place, and then puts it there: it is complete or not there. What it replaces gives it
/// its permissions; of a symbolic link it is what the link points to. Pipes and devices are written as they are.
/// \throws std::invalid_argument as write_model, std::runtime_error with the reason when the file cannot be written.
void save_model(const SavedModel& saved, const std::string& path);

/// Reads a model file of a linear machine; Machine::load() reads others too.
/// \throws std::invalid_argument as read_model, std::runtime_error with the reason when the file cannot be read.
SavedModel load_model(const std::string& path);

}  // namespace halosvm
HALOSVM_PUBLIC_END
