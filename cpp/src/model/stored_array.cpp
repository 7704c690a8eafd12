// Arrays of model files: JSON comes in, numbers and their shape go out, checked against each other.

#include "model/stored_array.hpp"

#include "halosvm/core/check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

namespace halosvm::record {
namespace {

constexpr std::size_t most_dimensions = 4;
constexpr double largest_integer = 0x1p53;

/// Lists of lists, all of one length.
// NOLINTBEGIN(misc-no-recursion): most_dimensions bounds the depth
void read_rows(JsonReader& reader, std::size_t depth, Array& out) {
  const std::size_t at = reader.place();
  const auto require_depth = [&](bool right) {
    if (!right) reader.fail_at(at, out.name + " has rows of different depths");
  };
  if (depth == out.shape.size()) {
    require_depth(out.numbers.empty() && depth < most_dimensions);
    out.shape.push_back(-1);
  }
  Index count = 0;
  reader.elements([&] {
    ++count;
    if (reader.next() == '[') {
      read_rows(reader, depth + 1, out);
    } else {
      require_depth(depth + 1 == out.shape.size());
      out.numbers.push_back(reader.number());
    }
  });
  if (out.shape[depth] < 0) out.shape[depth] = count;
  if (count == out.shape[depth]) return;
  reader.fail_at(at, out.name + " has a row of " + std::to_string(count) + " numbers, the first has " +
                         std::to_string(out.shape[depth]));
}
// NOLINTEND(misc-no-recursion)

/// The bytes of a text in base64; false if it is none.
bool decode(const std::string& text, std::string& bytes) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t end = std::min(text.find('='), text.size());
  if (text.size() % 4 != 0 || text.size() - end > 2 || text.find_first_not_of('=', end) != std::string::npos) {
    return false;
  }
  unsigned held = 0;
  unsigned n_bits = 0;
  for (std::size_t k = 0; k < end; ++k) {
    const std::size_t six = alphabet.find(text[k]);
    if (six == std::string_view::npos) return false;
    held = (held << 6U) | static_cast<unsigned>(six);
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes.push_back(static_cast<char>((held >> n_bits) & 0xFFU));
  }
  return true;
}

/// The number whose bytes stand in the order of little-endian processors.
template <class Number, class Bits>
Number number_at(const std::string& bytes, std::size_t at) {
  static_assert(sizeof(Number) == sizeof(Bits));
  Bits bits = 0;
  for (std::size_t k = sizeof(Bits); k-- > 0;) {
    bits = static_cast<Bits>((bits << 8U) | static_cast<unsigned char>(bytes[at + k]));
  }
  Number value{};
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Puts values, and numbers of a type by their bytes, where the array holds such numbers.
template <class Number, class Bits, class Held>
void put(const JsonReader& reader, const std::vector<double>& values, const std::string& bytes, const Array& array,
         std::vector<Held>& out) {
  const auto refuse = [&](const std::string& what) { reader.fail_at(array.place, array.name + what); };
  if (bytes.size() % sizeof(Number) != 0) refuse(" has a part of a number");
  for (const double value : values) {
    if (std::is_integral_v<Held> && (value != std::floor(value) || std::abs(value) > largest_integer)) {
      refuse(" holds " + check::text(value) + ", which is no integer");
    }
    out.push_back(static_cast<Held>(value));
  }
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
    out.push_back(static_cast<Held>(number_at<Number, Bits>(bytes, at)));
  }
  for (const Held value : out) {
    if (!std::isfinite(static_cast<double>(value))) refuse(" holds a number that is not finite");
  }
}

template <class Number>
void transpose(const std::vector<Index>& shape, std::vector<Number>& numbers) {
  if (numbers.empty()) return;
  std::vector<Number> out;
  out.reserve(numbers.size());
  for (Index j = 0; j < shape[1]; ++j) {
    for (Index i = 0; i < shape[0]; ++i) out.push_back(numbers[static_cast<std::size_t>(i * shape[1] + j)]);
  }
  numbers = std::move(out);
}

/// Whether the product of the sizes, which may overflow, is a count.
bool is_shape_of(const std::vector<Index>& shape, Index count) {
  if (shape.empty() || shape.size() > most_dimensions) return false;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return count == 0;
  for (const Index size : shape) {
    if (count % size != 0) return false;
    count /= size;
  }
  return count == 1;
}

}  // namespace

ArrayView Array::view(Index rows, Index cols, bool squared) const {
  return singles.empty() ? ArrayView(numbers.data(), rows, cols, squared)
                         : ArrayView(singles.data(), rows, cols, squared);
}

// NOLINTBEGIN(misc-no-recursion): the reader counts the depth
Array read_array(JsonReader& reader, const std::string& name) {
  Array out;
  out.name = name;
  out.place = reader.place();
  const auto refuse = [&](const std::string& what) { reader.fail_at(out.place, name + what); };
  if (reader.next() == '[') {
    read_rows(reader, 0, out);
    if (out.numbers.empty()) refuse(" is empty");
    return out;
  }
  std::string type;
  std::string bytes;
  std::vector<double> values;
  Array columns;
  reader.members([&](const std::string& key) {
    if (key == "columns") {
      columns = read_array(reader, name);
    } else if (key == "dtype") {
      type = reader.string();
    } else if (key == "shape") {
      reader.elements([&] {
        const double size = reader.number();
        if (size != std::floor(size) || size < 0.0 || size > largest_integer) refuse(" has a shape that is none");
        out.shape.push_back(static_cast<Index>(size));
      });
    } else if (key == "values") {
      reader.elements([&] { values.push_back(reader.number()); });
    } else if (key == "base64") {
      if (!decode(reader.string(), bytes)) refuse(" is not base64");
    } else {
      reader.skip();
    }
  });
  if (columns.given()) {
    if (columns.shape.size() != 2) refuse(" has columns of no matrix");
    transpose(columns.shape, columns.numbers);
    transpose(columns.shape, columns.singles);
    transpose(columns.shape, columns.integers);
    std::swap(columns.shape[0], columns.shape[1]);
    return columns;
  }
  if (type == "<f8") {
    put<double, std::uint64_t>(reader, values, bytes, out, out.numbers);
  } else if (type == "<f4") {
    put<float, std::uint32_t>(reader, values, bytes, out, out.singles);
  } else if (type == "<i8") {
    put<std::int64_t, std::uint64_t>(reader, values, bytes, out, out.integers);
  } else if (type == "<i4") {
    put<std::int32_t, std::uint32_t>(reader, values, bytes, out, out.integers);
  } else {
    refuse(" has numbers of type \"" + type + "\"; <f8, <f4, <i8 and <i4 can be read");
  }
  const auto count = static_cast<Index>(out.numbers.size() + out.singles.size() + out.integers.size());
  if (!is_shape_of(out.shape, count)) refuse(" has " + std::to_string(count) + " numbers, its shape has others");
  return out;
}
// NOLINTEND(misc-no-recursion)

}  // namespace halosvm::record
