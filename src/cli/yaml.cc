#include "cli/yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "cli/yaml_scalar.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr int kMaxYamlDepth = 16;

class YamlParser {
 public:
  YamlParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  std::vector<ConfigEntry> parse() {
    take("\xEF\xBB\xBF");
    line_start_ = at_;
    skip_to_content();
    if (peek() == '%') refuse("directives");
    if (is_mark("---")) {
      at_ += 3;
      finish_line();
    }
    if (!at_end()) parse_mapping(column(), "", 0);
    if (!at_end()) fail("the line is indented less than the first key");
    return std::move(entries_);
  }

 private:
  [[noreturn]] void fail(std::string_view what, ErrorCode code = ErrorCode::invalid) const {
    throw Error(code, fmt::format("{}:{}: {}", where_, line_, what));
  }
  [[noreturn]] void refuse(std::string_view what) const {
    fail(fmt::format("{} are not supported here", what), ErrorCode::unsupported);
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool take(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  static bool ends_word(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
  }
  size_t column() const { return at_ - line_start_; }
  bool is_item() const { return peek() == '-' && ends_word(peek(1)); }
  // "---" or "..." in the first column.
  bool is_mark(std::string_view mark) const {
    return column() == 0 && text_.substr(at_, 3) == mark && ends_word(peek(3));
  }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  bool take_line_end() {
    if (!take("\n") && !take("\r\n")) return false;
    line_start_ = at_;
    ++line_;
    return true;
  }
  void skip_comment() {
    const bool may_begin = at_ == line_start_ || text_[at_ - 1] == ' ' || text_[at_ - 1] == '\t';
    if (peek() != '#' || !may_begin) return;
    at_ = std::min(text_.find('\n', at_), text_.size());
    if (at_ > 0 && text_[at_ - 1] == '\r') --at_;
  }
  // To the text of the next line that has one.
  void skip_to_content() {
    do {
      while (peek() == ' ') ++at_;
      const size_t indented_to = at_;
      skip_blanks();
      const bool has_tab = at_ != indented_to;
      skip_comment();
      if (has_tab && !at_end() && peek() != '\n' && peek() != '\r') {
        fail("found a tab in the indentation; expected blanks");
      }
    } while (take_line_end());
  }
  void finish_line() {
    skip_blanks();
    skip_comment();
    if (!at_end() && !take_line_end()) fail("expected the end of the line");
    skip_to_content();
    if (is_mark("---") || is_mark("...")) refuse("several documents");
  }

  void parse_mapping(size_t indentation, const std::string& table, int depth) {
    if (depth > kMaxYamlDepth) fail("mappings are nested too deeply");
    while (!at_end() && column() >= indentation) {
      if (column() > indentation) fail("the line is indented more than the key before it");
      parse_entry(indentation, table, depth);
    }
  }

  void parse_entry(size_t indentation, const std::string& table, int depth) {
    if (is_item()) fail("expected KEY: VALUE, found an item of a list");
    const int entry_line = line_;
    std::string key = parse_key();
    if (key == "<<") refuse("merge keys");
    if (!take(":") || !ends_word(peek())) fail(fmt::format("expected \": \" after {}", key));
    if (!keys_.emplace(table, key).second) fail(fmt::format("the key {} is set twice", key));
    skip_blanks();
    skip_comment();
    if (!at_end() && peek() != '\n' && peek() != '\r') {
      add_entry(table, std::move(key), parse_value(0, Place::line), entry_line);
      finish_line();
      return;
    }
    finish_line();
    if (!at_end() && is_item() && column() >= indentation) {
      add_entry(table, std::move(key), parse_items(column()), entry_line);
    } else if (!at_end() && column() > indentation) {
      parse_mapping(column(), table.empty() ? key : fmt::format("{}.{}", table, key), depth + 1);
    } else {
      add_entry(table, std::move(key), Json(), entry_line);
    }
  }

  void add_entry(const std::string& table, std::string key, Json value, int entry_line) {
    entries_.push_back({table, std::move(key), std::move(value), entry_line});
  }

  Json parse_items(size_t indentation) {
    Json::Array items;
    while (!at_end() && column() == indentation && is_item()) {
      ++at_;
      skip_blanks();
      skip_comment();
      if (is_item()) refuse("lists inside lists of lines");
      items.push_back(parse_value(0, Place::line));
      finish_line();
    }
    return items;
  }

  enum class Place : uint8_t { line, list, mapping };  // what may end a plain scalar

  Json parse_value(int depth, Place place) {
    if (depth > kMaxYamlDepth) fail("lists and mappings are nested too deeply");
    switch (peek()) {
      case '"':
        return parse_double_quoted();
      case '\'':
        return parse_single_quoted();
      case '[':
        return parse_list(depth);
      case '{':
        return parse_flow_mapping(depth);
      case '|':
      case '>':
        refuse("texts of several lines");
      case '&':
      case '*':
        refuse("anchors and aliases");
      case '!':
        refuse("tags");
      case '@':
      case '`':
      case '%':
      case ']':
      case '}':
      case ',':
        fail(fmt::format("found {} at the begin of a value; a text needs quotes there", peek()));
      default:
        return parse_plain(place);
    }
  }

  Json parse_plain(Place place) {
    const std::string_view word = plain_text(place);
    if (peek() == ':' && place == Place::line) {
      refuse("mappings on the line of another key or of a list's item");
    }
    auto value = plain_yaml_scalar(word);
    if (!value)
      fail(fmt::format("found {}: write a number without leading zeros, or quotes", word));
    return std::move(*value);
  }

  // Up to a comment, the end of the line or, in brackets, a mark; without blanks at its end.
  std::string_view plain_text(Place place) {
    const size_t begin = at_;
    size_t end = at_;
    for (; !at_end() && peek() != '\n' && peek() != '\r'; ++at_) {
      const char c = peek();
      if (c == '#' && at_ > begin && ends_word(text_[at_ - 1])) break;
      if (place != Place::line && std::string_view(",[]{}").find(c) != std::string_view::npos)
        break;
      const bool ends_key =
          ends_word(peek(1)) || (place != Place::line &&
                                 std::string_view(",[]{}").find(peek(1)) != std::string_view::npos);
      if (c == ':' && ends_key) break;
      if (c != ' ' && c != '\t') end = at_ + 1;
    }
    return text_.substr(begin, end - begin);
  }

  // Of a mapping in lines or in braces.
  std::string parse_key(Place place = Place::line) {
    std::string key;
    if (peek() == '"') {
      key = parse_double_quoted();
    } else if (peek() == '\'') {
      key = parse_single_quoted();
    } else {
      if (peek() == '?' && ends_word(peek(1))) refuse("keys after a question mark");
      if (peek() != '\0' &&
          std::string_view("[{&*!|>@`%,]}").find(peek()) != std::string_view::npos) {
        fail(fmt::format("found {} at the begin of a key; it needs quotes there", peek()));
      }
      key = plain_text(place);
      if (key.empty()) fail("expected a key");
      return key;
    }
    skip_blanks();
    return key;
  }

  // In brackets lines may end anywhere between values.
  void skip_space() {
    do {
      skip_blanks();
      skip_comment();
    } while (take_line_end());
  }

  Json parse_list(int depth) {
    take("[");
    Json::Array items;
    for (skip_space(); !take("]"); skip_space()) {
      items.push_back(parse_value(depth + 1, Place::list));
      skip_space();
      if (!take(",") && peek() != ']') fail("expected , or ] in the list");
    }
    return items;
  }

  Json parse_flow_mapping(int depth) {
    take("{");
    Json::Object members;
    for (skip_space(); !take("}"); skip_space()) {
      std::string key = parse_key(Place::mapping);
      if (!take(":")) fail(fmt::format("expected : after {}", key));
      const bool is_set =
          std::ranges::any_of(members, [&](const auto& m) { return m.first == key; });
      if (is_set) fail(fmt::format("the key {} is set twice", key));
      skip_space();
      const bool is_empty = peek() == ',' || peek() == '}';
      members.emplace_back(std::move(key),
                           is_empty ? Json() : parse_value(depth + 1, Place::mapping));
      skip_space();
      if (!take(",") && peek() != '}') fail("expected , or } in the mapping");
    }
    return members;
  }

  std::string parse_single_quoted() {
    take("'");
    std::string value;
    for (;;) {
      if (at_end() || peek() == '\n') fail("the string has no end on its line");
      if (!take("'")) {
        value.push_back(text_[at_++]);
      } else if (take("'")) {  // two of them are a quote in the text
        value.push_back('\'');
      } else {
        return value;
      }
    }
  }

  std::string parse_double_quoted() {
    take("\"");
    std::string value;
    while (!take("\"")) {
      if (at_end() || peek() == '\n') fail("the string has no end on its line");
      const char c = text_[at_++];
      if (c == '\\') {
        append_escape(value);
      } else {
        value.push_back(c);
      }
    }
    return value;
  }

  void append_escape(std::string& value) {
    constexpr std::string_view kNames = "ntr0abefv\"\\/ ";
    constexpr std::string_view kCharacters("\n\t\r\0\a\b\x1b\f\v\"\\/ ", 13);
    const char escape = peek();
    ++at_;
    if (const size_t index = kNames.find(escape); index != kNames.npos) {
      value.push_back(kCharacters[index]);
      return;
    }
    const size_t digits = escape == 'x' ? 2 : escape == 'u' ? 4 : escape == 'U' ? 8 : 0;
    const std::string_view hex = text_.substr(std::min(at_, text_.size()), digits);
    uint32_t code_point = 0;
    const auto parsed = std::from_chars(hex.data(), hex.data() + hex.size(), code_point, 16);
    const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
    if (digits == 0) fail("unknown escape in a string");
    if (hex.size() != digits || parsed.ptr != hex.data() + digits || code_point > 0x10FFFF ||
        is_surrogate) {
      fail("the escape is not a code point");
    }
    append_utf8(value, code_point);
    at_ += digits;
  }

  std::string_view text_;
  std::string_view where_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  std::set<std::pair<std::string, std::string>> keys_;  // table and key
  std::vector<ConfigEntry> entries_;
};

}  // namespace

std::vector<ConfigEntry> parse_yaml(std::string_view text, std::string_view where) {
  if (!is_valid_utf8(text)) {
    throw Error(ErrorCode::invalid, fmt::format("{}: not valid UTF-8", where));
  }
  return YamlParser(text, where).parse();
}

}  // namespace paceline
