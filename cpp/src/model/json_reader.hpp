/// \file
/// JSON text comes in, one value after the other goes out to those who ask for it; nothing else is stored.
#pragma once

#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace halosvm {

/// A strict reader that knows its place. Every error is a std::invalid_argument with line and column.
class JsonReader {
 public:
  /// What it throws.
  struct Error : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
  };

  explicit JsonReader(std::string_view text) : text_(text) {}

  /// Calls use(key) for each member of an object, which must read or skip its value; keys are distinct.
  template <class Use>
  void members(const Use& use);

  /// Calls use() for each element of an array, which must read it.
  template <class Use>
  void elements(const Use& use);

  std::string string();

  /// The text of a number.
  std::string_view digits();

  /// A finite number.
  double number();

  bool boolean();

  /// Takes `null` if that is next.
  bool null() { return word("null"); }

  /// Reads any value and drops it.
  void skip();

  /// The first character of the next value.
  char next();

  /// After the one value of a document there is white space alone.
  void end();

  [[noreturn]] void fail(const std::string& what) const { fail_at(at_, what); }
  [[noreturn]] void fail_at(std::size_t at, const std::string& what) const;

  /// Where the next value begins.
  std::size_t place() {
    next();
    return at_;
  }

 private:
  static constexpr int deepest_ = 64;

  void expect(char wanted);
  bool word(std::string_view wanted);
  bool take(char wanted);
  void enter(char bracket);
  void leave() { --depth_; }
  unsigned hexadecimal();

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

template <class Use>
// NOLINTNEXTLINE(misc-no-recursion): `enter` counts the depth
void JsonReader::members(const Use& use) {
  enter('{');
  std::set<std::string> known;
  if (!take('}')) {
    do {
      const std::size_t at = place();
      const std::string key = string();
      if (!known.insert(key).second) fail_at(at, "\"" + key + "\" is there twice");
      expect(':');
      use(key);
    } while (take(','));
    expect('}');
  }
  leave();
}

template <class Use>
void JsonReader::elements(const Use& use) {
  enter('[');
  if (!take(']')) {
    do {
      use();
    } while (take(','));
    expect(']');
  }
  leave();
}

}  // namespace halosvm
