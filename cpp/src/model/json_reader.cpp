// JSON text comes in, one value after the other goes out; whatever is not strictly JSON is refused with its place.

#include "model/json_reader.hpp"

#include "model/numbers.hpp"

#include <algorithm>

namespace halosvm {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(unsigned code, std::string& out) {
  const auto put = [&out](unsigned byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80U) {
    put(code);
    return;
  }
  if (code < 0x800U) {
    put(0xC0U | (code >> 6U));
  } else {
    if (code < 0x10000U) {
      put(0xE0U | (code >> 12U));
    } else {
      put(0xF0U | (code >> 18U));
      put(0x80U | ((code >> 12U) & 0x3FU));
    }
    put(0x80U | ((code >> 6U) & 0x3FU));
  }
  put(0x80U | (code & 0x3FU));
}

}  // namespace

void JsonReader::fail_at(std::size_t at, const std::string& what) const {
  const std::string_view before = text_.substr(0, std::min(at, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t last = before.rfind('\n');
  const std::size_t column = last == std::string_view::npos ? before.size() + 1 : before.size() - last;
  throw Error("model file line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what);
}

char JsonReader::next() {
  at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
  if (at_ == text_.size()) fail("the text ends too early");
  return text_[at_];
}

bool JsonReader::take(char wanted) {
  if (next() != wanted) return false;
  ++at_;
  return true;
}

void JsonReader::expect(char wanted) {
  if (!take(wanted)) fail(std::string("expected '") + wanted + "'");
}

bool JsonReader::word(std::string_view wanted) {
  next();
  if (text_.substr(at_, wanted.size()) != wanted) return false;
  at_ += wanted.size();
  return true;
}

void JsonReader::enter(char bracket) {
  expect(bracket);
  if (++depth_ > deepest_) fail("brackets are nested more than " + std::to_string(deepest_) + " deep");
}

void JsonReader::end() {
  at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
  if (at_ != text_.size()) fail("there is something behind the document");
}

bool JsonReader::boolean() {
  if (word("true")) return true;
  if (!word("false")) fail("expected true or false");
  return false;
}

std::string_view JsonReader::digits() {
  next();
  const std::size_t begin = at_;
  const auto is = [this](char c) { return at_ < text_.size() && text_[at_] == c; };
  const auto run = [this] {
    const std::size_t first = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == first) fail("expected a number");
  };
  if (is('-')) ++at_;
  if (is('0')) {
    ++at_;
  } else {
    run();
  }
  if (is('.')) {
    ++at_;
    run();
  }
  if (is('e') || is('E')) {
    ++at_;
    if (is('+') || is('-')) ++at_;
    run();
  }
  return text_.substr(begin, at_ - begin);
}

double JsonReader::number() {
  const std::size_t begin = place();
  double value = 0.0;
  const std::string_view text = digits();
  if (!read_number(text, value)) fail_at(begin, std::string(text.substr(0, 40)) + " is beyond the largest number");
  return value;
}

unsigned JsonReader::hexadecimal() {
  unsigned code = 0;
  for (int k = 0; k < 4; ++k, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : ' ';
    const bool lower = c >= 'a' && c <= 'f';
    if (!is_digit(c) && !lower && !(c >= 'A' && c <= 'F')) fail("expected four hexadecimal digits");
    code = 16 * code + static_cast<unsigned>(is_digit(c) ? c - '0' : (lower ? c - 'a' : c - 'A') + 10);
  }
  return code;
}

std::string JsonReader::string() {
  if (!take('"')) fail("expected a string");
  std::string out;
  for (;; ++at_) {
    const std::size_t plain = std::min(text_.find_first_of("\"\\", at_), text_.size());
    for (; at_ < plain; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20U) fail("a control character stands in a string");
      out.push_back(text_[at_]);
    }
    if (at_ + 1 >= text_.size() && (at_ == text_.size() || text_[at_] != '"')) fail("a string has no end");
    if (text_[at_++] == '"') return out;
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
    const std::size_t which = names.find(text_[at_]);
    if (which != std::string_view::npos) {
      out.push_back(meant[which]);
      continue;
    }
    if (text_[at_] != 'u') fail("there is no such escape in a string");
    ++at_;
    unsigned code = hexadecimal();
    if (code >= 0xD800U && code < 0xDC00U && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const unsigned low = hexadecimal();
      if (low < 0xDC00U || low > 0xDFFFU) fail("a surrogate has no pair");
      code = 0x10000U + ((code - 0xD800U) << 10U) + (low - 0xDC00U);
    }
    if (code >= 0xD800U && code <= 0xDFFFU) fail("a surrogate has no pair");
    append_utf8(code, out);
    --at_;  // the loop steps over the last character of each escape
  }
}

// NOLINTBEGIN(misc-no-recursion): `enter` counts the depth
void JsonReader::skip() {
  switch (next()) {
    case '{':
      members([this](const std::string&) { skip(); });
      return;
    case '[':
      elements([this] { skip(); });
      return;
    case '"':
      string();
      return;
    case 't':
    case 'f':
      boolean();
      return;
    case 'n':
      if (!null()) fail("expected null");
      return;
    default:
      number();
  }
}
// NOLINTEND(misc-no-recursion)

}  // namespace halosvm
