// Records of estimators: the text of a model file comes in, its members go out by their names.

#include "model/record.hpp"

#include "halosvm/core/check.hpp"
#include "model/numbers.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <system_error>

namespace halosvm::record {
namespace {

using Name = std::string_view;

// What is read of objects, by names that mean one thing wherever they stand; all else is left out.
constexpr Name numbers_read[] = {"slope", "offset", "temperature", "degree", "coef0", "tau", "normalize", "squared"};
constexpr Name arrays_read[] = {"coef", "intercept", "dual_coef", "n_support", "support_vectors", "at",    "heights",
                                "mean", "weights",   "offsets",   "values",    "diagonal_values", "shape", "gamma"};
constexpr Name objects_read[] = {"kernel", "support_gaussians", "components", "covariances", "machine"};
constexpr Name parameters_read[] = {"loss", "method", "decision_function_shape"};

constexpr Name linear_machines[] = {"UncertainSVC", "UncertainSVR", "SafeSVC", "TotalSVC"};
constexpr Name other_machines[] = {"UncertainKernelSVC", "IsotropicKernelSVC", "UncertainCalibratedClassifier",
                                   "FrozenEstimator"};
constexpr Name all_curves[] = {"PlattScaling", "IsotonicCurve", "Temperature"};

template <std::size_t n>
bool has(const Name (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

enum class Wanted : std::uint8_t { linear_machine, machine, curve };

void require_wanted(const JsonReader& reader, std::size_t at, const std::string& name, Wanted wanted) {
  const bool linear = has(linear_machines, name);
  const bool other = has(other_machines, name);
  switch (wanted) {
    case Wanted::linear_machine:
      if (!linear) reader.fail_at(at, name + " is no linear machine" + (other ? "; Machine::load reads it" : ""));
      return;
    case Wanted::machine:
      if (!linear && !other) reader.fail_at(at, name + " is no machine that C++ programs read");
      return;
    case Wanted::curve:
      if (!has(all_curves, name)) reader.fail_at(at, name + " is no curve of probabilities");
  }
}

ClassLabel read_label(JsonReader& reader) {
  const std::size_t at = reader.place();
  const char c = reader.next();
  if (c == '"') return reader.string();
  if (c == 't' || c == 'f') return reader.boolean();
  const std::string_view digits = reader.digits();
  if (digits.find_first_of(".eE") != std::string_view::npos) {
    double value = 0.0;
    if (!read_number(digits, value)) reader.fail_at(at, "a class is beyond the largest number");
    return value;
  }
  std::int64_t whole = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), whole).ec != std::errc()) {
    reader.fail_at(at, "a class is beyond the largest integer");
  }
  return whole;
}

void read_classes(JsonReader& reader, std::vector<ClassLabel>& classes) {
  reader.members([&](const std::string& key) {
    if (key == "values") {
      reader.elements([&] { classes.push_back(read_label(reader)); });
    } else {
      reader.skip();
    }
  });
}

void read_parameters(JsonReader& reader, Record& out) {
  reader.members([&](const std::string& key) {
    if (has(parameters_read, key)) {
      out.texts[key] = reader.string();
    } else if (key == "C" && reader.next() != '{') {  // {"number": "inf"} is a hard margin
      out.numbers[key] = reader.number();
    } else {
      reader.skip();
    }
  });
}

double read_quantity(JsonReader& reader) {
  const char c = reader.next();
  if (c == 't' || c == 'f') return reader.boolean() ? 1.0 : 0.0;
  return reader.number();
}

/// Reads a member, or drops it.
// NOLINTBEGIN(misc-no-recursion): the reader counts the depth
void read_member(JsonReader& reader, const std::string& key, Wanted wanted, Record& out) {
  const std::string name = out.name.empty() ? key : out.name + '.' + key;
  const auto read_object = [&](Record& object, Wanted what) {
    object.name = name;
    object.place = reader.place();
    reader.members([&](const std::string& inner) { read_member(reader, inner, what, object); });
  };
  if (key == "estimator") {
    out.place = reader.place();
    out.texts[key] = reader.string();
    require_wanted(reader, out.place, out.texts[key], wanted);
  } else if (key == "parameters") {
    read_parameters(reader, out);
  } else if (key == "feature_names") {
    if (!reader.null()) reader.elements([&] { out.feature_names.push_back(reader.string()); });
  } else if (key == "classes") {
    read_classes(reader, out.classes);
  } else if (key == "curves") {
    reader.elements([&] { read_object(out.curves.emplace_back(), Wanted::curve); });
  } else if (key == "kind") {
    out.texts[key] = reader.string();
  } else if (has(numbers_read, key)) {
    if (!reader.null()) out.numbers[key] = read_quantity(reader);
  } else if (has(arrays_read, key)) {
    out.arrays[key] = read_array(reader, name);
  } else if (has(objects_read, key)) {
    out.within[key] = std::make_unique<Record>();
    read_object(*out.within[key], Wanted::machine);
  } else {
    reader.skip();
  }
}
// NOLINTEND(misc-no-recursion)

void require_version(JsonReader& reader) {
  const std::size_t at = reader.place();
  const double version = reader.number();
  if (version != 1.0 && version != 3.0) {
    reader.fail_at(at, "format_version is " + check::text(version) + "; 1 and 3 can be read");
  }
}

}  // namespace

Array& Record::array(const JsonReader& reader, const std::string& key) {
  if (arrays.count(key) == 0) fail(reader, '"' + key + "\" is missing");
  return arrays.at(key);
}

double Record::needed(const JsonReader& reader, const std::string& key) const {
  if (numbers.count(key) == 0) fail(reader, '"' + key + "\" is missing");
  return numbers.at(key);
}

Record& Record::at(const JsonReader& reader, const std::string& key) {
  if (within.count(key) == 0) fail(reader, '"' + key + "\" is missing");
  return *within.at(key);
}

bool is_linear(std::string_view estimator) { return has(linear_machines, estimator); }

std::string_view fault_of(const std::vector<ClassLabel>& classes) {
  if (std::set<ClassLabel>(classes.begin(), classes.end()).size() != classes.size()) {
    return "two classes have the same label";
  }
  for (std::size_t k = 1; k < classes.size(); ++k) {
    if (classes[k].index() == classes[k - 1].index() && classes[k] < classes[k - 1]) {
      return "classes do not ascend; scores belong to classes in ascending order";
    }
  }
  return "";
}

Record read(JsonReader& reader, bool linear) {
  constexpr const char* format_name = "halosvm-model";
  Record out;
  bool is_model = false;
  bool is_versioned = false;
  reader.members([&](const std::string& key) {
    if (key == "format") {
      const std::size_t at = reader.place();
      is_model = reader.string() == format_name;
      if (!is_model) reader.fail_at(at, "this is no model file");
    } else if (key == "format_version") {
      require_version(reader);
      is_versioned = true;
    } else {
      read_member(reader, key, linear ? Wanted::linear_machine : Wanted::machine, out);
    }
  });
  reader.end();
  if (!is_model) reader.fail(std::string(R"("format": ")") + format_name + "\" is missing");
  if (!is_versioned) reader.fail("\"format_version\" is missing");
  if (out.text("estimator").empty()) reader.fail("\"estimator\" is missing");
  return out;
}

}  // namespace halosvm::record
