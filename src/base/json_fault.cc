#include "base/json_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"

namespace paceline {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// A recursive descent over RFC 8259's grammar. Every member returns false at the first fault, with
// position() and reason() set.
class JsonScan {
 public:
  JsonScan(std::string_view text, size_t max_depth) : text_(text), max_depth_(max_depth) {}

  bool document() {
    if (!value()) return false;
    skip_space();
    return at_end() || fail("unexpected text after the end of the JSON");
  }

  size_t position() const { return position_; }
  const std::string& reason() const { return reason_; }

 private:
  bool at_end() const { return position_ >= text_.size(); }
  char here() const { return at_end() ? '\0' : text_[position_]; }

  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }
  bool fail_expecting(std::string_view expected) {
    if (at_end()) return fail(fmt::format("the text ends, expected {}", expected));
    const auto byte = static_cast<unsigned char>(here());
    if (byte < 0x20 || byte >= 0x7f) return fail(fmt::format("expected {}", expected));
    return fail(fmt::format("found '{}', expected {}", here(), expected));
  }

  void skip_space() {
    while (!at_end() && std::string_view(" \t\r\n").find(here()) != std::string_view::npos) {
      ++position_;
    }
  }

  bool value() {
    skip_space();
    const char c = here();
    if (c == '{') return nested('}', &JsonScan::member, "',' or '}'");
    if (c == '[') return nested(']', &JsonScan::value, "',' or ']'");
    if (c == '"') return string();
    if (c == '-' || is_digit(c)) return number();
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!text_.substr(position_).starts_with(word)) continue;
      position_ += word.size();
      return true;
    }
    if (c == '\'') return fail("found a single quote; JSON strings need double quotes");
    return fail_expecting("a value");
  }

  bool nested(char end, bool (JsonScan::*item)(), std::string_view expected) {
    if (++depth_ > max_depth_) return fail(fmt::format("nested deeper than {}", max_depth_));
    ++position_;
    skip_space();
    bool is_first = true;
    while (is_first ? here() != end : true) {
      if (!(this->*item)()) return false;
      is_first = false;
      skip_space();
      if (here() == end) break;
      if (here() != ',') return fail_expecting(expected);
      ++position_;
      skip_space();
      if (here() == end) return fail("a comma before the end");
    }
    ++position_;
    --depth_;
    return true;
  }

  bool member() {
    skip_space();
    if (here() != '"') return fail_expecting("a key in double quotes");
    if (!string()) return false;
    skip_space();
    if (here() != ':') return fail_expecting("':'");
    ++position_;
    return value();
  }

  bool string() {
    for (++position_; here() != '"' || at_end(); ++position_) {
      if (at_end()) return fail("the text ends inside a string");
      if (static_cast<unsigned char>(here()) < 0x20) {
        return fail("a control character in a string; write it as an escape, such as \\n");
      }
      if (here() == '\\' && !escape()) return false;
    }
    ++position_;
    return true;
  }

  // Ends at the escape's last character.
  bool escape() {
    ++position_;
    if (here() != 'u') {
      const bool is_known = std::string_view("\"\\/bfnrt").find(here()) != std::string_view::npos;
      return (is_known && !at_end()) || fail_expecting(
                                            "an escape: \\\" \\\\ \\/ \\b \\f \\n \\r \\t "
                                            "or \\u with four hexadecimal digits");
    }
    uint32_t unit = 0;
    if (!hex_digits(unit)) return false;
    if (unit >= 0xdc00 && unit < 0xe000) return fail("half of a surrogate pair");
    if (unit < 0xd800 || unit >= 0xe000) return true;
    if (text_.substr(position_ + 1, 2) != "\\u") return fail("half of a surrogate pair");
    position_ += 2;
    if (!hex_digits(unit)) return false;
    return (unit >= 0xdc00 && unit < 0xe000) || fail("half of a surrogate pair");
  }

  // The four behind the "u".
  bool hex_digits(uint32_t& unit) {
    constexpr size_t kDigits = 4;
    for (size_t i = 0; i < kDigits; ++i) {
      ++position_;
      if (!is_hex_digit(here())) return fail_expecting("a hexadecimal digit");
    }
    const char* const begin = text_.data() + position_ + 1 - kDigits;
    std::from_chars(begin, begin + kDigits, unit, 16);
    return true;
  }

  bool number() {
    const size_t begin = position_;
    if (here() == '-') ++position_;
    if (here() == '0' && position_ + 1 < text_.size() && is_digit(text_[position_ + 1])) {
      return fail("a number with a leading zero");
    }
    if (!digits()) return false;
    if (here() == '.') {
      ++position_;
      if (!digits()) return false;
    }
    if (here() == 'e' || here() == 'E') {
      ++position_;
      if (here() == '+' || here() == '-') ++position_;
      if (!digits()) return false;
    }
    double unused = 0;
    const auto parsed = std::from_chars(text_.data() + begin, text_.data() + position_, unused);
    if (parsed.ec == std::errc()) return true;
    position_ = begin;
    return fail("a number beyond the range of 64-bit floating point");
  }

  bool digits() {
    if (!is_digit(here())) return fail_expecting("a digit");
    while (is_digit(here())) ++position_;
    return true;
  }

  std::string_view text_;
  size_t max_depth_;
  size_t depth_ = 0;
  size_t position_ = 0;
  std::string reason_;
};

JsonFault fault_at(std::string_view text, size_t position, std::string reason) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {.line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n')),
          .column = 1 + static_cast<size_t>(count_code_points(before.substr(line_start))),
          .reason = std::move(reason)};
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    const DecodedCodePoint next = decode_utf8(text.substr(position));
    if (!next.valid) break;
    position += next.size;
  }
  return position;
}

}  // namespace

std::string JsonFault::text_in_line() const { return fmt::format("column {}: {}", column, reason); }

std::string JsonFault::text() const { return fmt::format("line {}, {}", line, text_in_line()); }

std::optional<JsonFault> find_json_fault(std::string_view text, size_t max_depth) {
  JsonScan scan(text, max_depth);
  if (!scan.document()) return fault_at(text, scan.position(), scan.reason());
  if (!is_valid_utf8(text)) return fault_at(text, valid_utf8_prefix(text), "not UTF-8");
  return std::nullopt;
}

}  // namespace paceline
