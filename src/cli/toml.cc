#include "cli/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr int kMaxDepth = 16;

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

class TomlParser {
 public:
  TomlParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  std::vector<ConfigEntry> parse() {
    for (skip_lines(); !at_end(); skip_lines()) {
      if (peek() == '[') {
        parse_table();
      } else {
        parse_entry();
      }
      skip_blanks();
      skip_comment();
      if (!at_end() && !take("\n") && !take("\r\n")) fail("expected the end of the line");
    }
    return std::move(entries_);
  }

 private:
  [[noreturn]] void fail(std::string_view what, ErrorCode code = ErrorCode::invalid) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw Error(code, fmt::format("{}:{}: {}", where_, line, what));
  }

  int line() const {
    return 1 + static_cast<int>(std::count(text_.begin(),
                                           text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
  }

  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  void skip_comment() {
    if (peek() != '#') return;
    at_ = std::min(text_.find('\n', at_), text_.size());
  }
  // Blanks, comments and line ends.
  void skip_lines() {
    for (size_t before = at_ + 1; before != at_;) {
      before = at_;
      skip_blanks();
      skip_comment();
      if (!take("\n")) take("\r\n");
    }
  }

  std::string parse_key() {
    std::string key;
    if (peek() == '"') {
      key = parse_basic_string();
    } else if (peek() == '\'') {
      key = parse_literal_string();
    } else {
      while (!at_end() && is_bare(peek())) key.push_back(text_[at_++]);
      if (key.empty()) fail("expected a key");
    }
    skip_blanks();
    if (peek() == '.') fail("dotted keys are not supported here", ErrorCode::unsupported);
    return key;
  }

  void parse_table() {
    take("[");
    if (peek() == '[') fail("arrays of tables are not supported here", ErrorCode::unsupported);
    skip_blanks();
    table_ = parse_key();
    if (!take("]")) fail("expected ] after the table's name");
  }

  void parse_entry() {
    const int entry_line = line();
    std::string key = parse_key();
    if (!take("=")) fail(fmt::format("expected = after {}", key));
    skip_blanks();
    const auto is_same = [&](const ConfigEntry& e) { return e.table == table_ && e.key == key; };
    if (std::any_of(entries_.begin(), entries_.end(), is_same)) {
      fail(fmt::format("the key {} is set twice", key));
    }
    Json value = parse_value(0);
    entries_.push_back({table_, std::move(key), std::move(value), entry_line});
  }

  Json parse_value(int depth) {
    if (depth > kMaxDepth) fail("arrays and tables are nested too deeply");
    switch (peek()) {
      case '"':
        return text_.substr(at_, 3) == "\"\"\"" ? parse_long_string('"') : parse_basic_string();
      case '\'':
        return text_.substr(at_, 3) == "'''" ? parse_long_string('\'') : parse_literal_string();
      case '[':
        return parse_array(depth);
      case '{':
        return parse_inline_table(depth);
      default:
        return parse_scalar();
    }
  }

  Json parse_array(int depth) {
    take("[");
    Json::Array items;
    for (skip_lines(); !take("]"); skip_lines()) {
      items.push_back(parse_value(depth + 1));
      skip_lines();
      if (!take(",") && peek() != ']') fail("expected , or ] in the array");
    }
    return items;
  }

  Json parse_inline_table(int depth) {
    take("{");
    Json::Object members;
    skip_blanks();
    while (!take("}")) {
      std::string key = parse_key();
      if (!take("=")) fail(fmt::format("expected = after {}", key));
      skip_blanks();
      for (const auto& [name, value] : members) {
        if (name == key) fail(fmt::format("the key {} is set twice", key));
      }
      members.emplace_back(std::move(key), parse_value(depth + 1));
      skip_blanks();
      if (!take(",") && peek() != '}') fail("expected , or } in the table");
      skip_blanks();
    }
    return members;
  }

  std::string parse_literal_string() {
    take("'");
    const size_t end = text_.find_first_of("'\n", at_);
    if (end == std::string_view::npos || text_[end] != '\'') fail("the string has no end");
    std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }

  std::string parse_basic_string() {
    take("\"");
    std::string value;
    while (!take("\"")) {
      if (at_end() || peek() == '\n') fail("the string has no end");
      append_character(value);
    }
    return value;
  }

  std::string parse_long_string(char quote) {
    const std::string delimiter(3, quote);
    take(delimiter);
    if (!take("\n")) take("\r\n");  // a line end right after the opening quotes is skipped
    std::string value;
    while (!take(delimiter)) {
      if (at_end()) fail("the string has no end");
      if (quote != '"') {
        value.push_back(text_[at_++]);
      } else if (!take_line_join()) {
        append_character(value);
      }
    }
    // Up to two quotes may end the text.
    for (int i = 0; i < 2 && peek() == quote; ++i) value.push_back(text_[at_++]);
    return value;
  }

  // Takes a backslash at the end of a line, with all blanks and line ends up to the next text.
  bool take_line_join() {
    if (peek() != '\\') return false;
    const size_t line_end = std::min(text_.find_first_not_of(" \t", at_ + 1), text_.size());
    const std::string_view rest = text_.substr(line_end);
    if (!rest.starts_with('\n') && !rest.starts_with("\r\n")) return false;
    at_ = std::min(text_.find_first_not_of(" \t\r\n", line_end), text_.size());
    return true;
  }

  void append_character(std::string& value) {
    const char c = text_[at_++];
    if (c != '\\') {
      value.push_back(c);
      return;
    }
    const char escape = peek();
    ++at_;
    switch (escape) {
      case 'n':
        value.push_back('\n');
        return;
      case 't':
        value.push_back('\t');
        return;
      case 'r':
        value.push_back('\r');
        return;
      case 'b':
        value.push_back('\b');
        return;
      case 'f':
        value.push_back('\f');
        return;
      case '"':
        value.push_back('"');
        return;
      case '\\':
        value.push_back('\\');
        return;
      case 'u':
        append_code_point(value, 4);
        return;
      case 'U':
        append_code_point(value, 8);
        return;
      default:
        --at_;
        fail("unknown escape in a string");
    }
  }

  void append_code_point(std::string& value, size_t digits) {
    const std::string_view hex = text_.substr(at_, digits);
    uint32_t code_point = 0;
    const auto parsed = std::from_chars(hex.data(), hex.data() + hex.size(), code_point, 16);
    const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
    if (hex.size() != digits || parsed.ptr != hex.data() + hex.size() || code_point > 0x10FFFF ||
        is_surrogate) {
      fail("the escape is not a code point");
    }
    append_utf8(value, code_point);
    at_ += digits;
  }

  // Booleans and numbers.
  Json parse_scalar() {
    size_t end = at_;
    while (end < text_.size() &&
           (is_bare(text_[end]) || text_[end] == '+' || text_[end] == '.' || text_[end] == ':')) {
      ++end;
    }
    const std::string_view word = text_.substr(at_, end - at_);
    if (word == "true" || word == "false") {
      at_ = end;
      return word == "true";
    }
    Json number = parse_number(word);
    if (number.is_null()) {
      const bool is_date = word.find(':') != std::string_view::npos ||
                           (word.size() >= 10 && word[4] == '-' && word[7] == '-');
      if (is_date) fail("dates and times are not supported here", ErrorCode::unsupported);
      fail(word.empty() ? std::string("expected a value")
                        : fmt::format("expected a value, found {} (a string needs quotes)", word));
    }
    at_ = end;
    return number;
  }

  // Null when the word isn't a number.
  static Json parse_number(std::string_view word) {
    std::string digits;
    for (char c : word) {
      if (c != '_') digits.push_back(c);
    }
    if (digits == "inf" || digits == "+inf") return Json(HUGE_VAL);
    if (digits == "-inf") return Json(-HUGE_VAL);
    const bool is_signed = !digits.empty() && (digits[0] == '+' || digits[0] == '-');
    if (digits.size() <= (is_signed ? 1u : 0u)) return Json();
    const char first = digits[is_signed ? 1 : 0];
    if (first < '0' || first > '9') return Json();
    if (digits[0] == '+') digits.erase(0, 1);
    int base = 10;
    if (digits.size() > 2 && digits[0] == '0') {
      base = digits[1] == 'x' ? 16 : digits[1] == 'o' ? 8 : digits[1] == 'b' ? 2 : 10;
    }
    const char* const begin = digits.data() + (base == 10 ? 0 : 2);
    const char* const end = digits.data() + digits.size();
    if (base != 10 && *begin == '-') return Json();
    int64_t integer = 0;
    if (const auto r = std::from_chars(begin, end, integer, base);
        r.ec == std::errc() && r.ptr == end) {
      return Json(integer);
    }
    uint64_t large = 0;
    if (const auto r = std::from_chars(begin, end, large, base);
        r.ec == std::errc() && r.ptr == end) {
      return Json(large);
    }
    double real = 0;
    if (base != 10) return Json();
    const auto r = std::from_chars(begin, end, real);
    return r.ec == std::errc() && r.ptr == end ? Json(real) : Json();
  }

  std::string_view text_;
  std::string_view where_;
  size_t at_ = 0;
  std::string table_;
  std::vector<ConfigEntry> entries_;
};

}  // namespace

std::vector<ConfigEntry> parse_toml(std::string_view text, std::string_view where) {
  if (!is_valid_utf8(text)) {
    throw Error(ErrorCode::invalid, fmt::format("{}: not valid UTF-8", where));
  }
  return TomlParser(text, where).parse();
}

}  // namespace paceline
