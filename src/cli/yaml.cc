// Reads YAML through libyaml.
#include <fmt/format.h>
#include <yaml.h>

#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/utf8.h"
#include "cli/config_text.h"
#include "cli/words.h"

namespace paceline {
namespace {

constexpr int kMaxYamlDepth = 16;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits, a point, an exponent, underscores: what a number without its sign may have. Other texts
// aren't numbers, even where from_chars would read one.
bool may_be_number(std::string_view text) {
  const bool begins = !text.empty() && (is_digit(text[0]) ||
                                        (text.size() > 1 && text[0] == '.' && is_digit(text[1])));
  return begins && text.find_first_not_of("0123456789.eE+-_xXabcdefABCDEF") == text.npos;
}

// `text` has no underscores. Null when it isn't a number.
Json number_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const bool is_negative = text.starts_with('-');
  const std::string_view digits = is_negative ? text.substr(1) : text;
  if (digits.starts_with("0x")) {
    const auto value = parse_number<int64_t>(digits.substr(2), 16);
    return value ? Json(is_negative ? -*value : *value) : Json();
  }
  if (const auto value = parse_number<int64_t>(text)) return *value;
  if (const auto value = parse_number<uint64_t>(text)) return *value;
  const auto value = parse_number<double>(text);
  return value ? Json(*value) : Json();
}

// Null, a boolean, a number or the text itself. Nothing for numbers that readers of YAML disagree
// about: with leading zeros (octal in YAML 1.1), or not a number.
std::optional<Json> plain_yaml_scalar(std::string_view text) {
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return Json();
  if (is_one_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) {
    return Json(true);
  }
  if (is_one_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) {
    return Json(false);
  }
  const bool is_signed = text.starts_with('-') || text.starts_with('+');
  const std::string_view digits = is_signed ? text.substr(1) : text;
  if (is_one_of(digits, {".inf", ".Inf", ".INF"})) {
    return Json(text.starts_with('-') ? -HUGE_VAL : HUGE_VAL);
  }
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) return std::nullopt;
  if (!may_be_number(digits)) return Json(std::string(text));
  std::string plain(text);
  std::erase(plain, '_');
  Json number = number_of(plain);
  if (number.is_null()) return Json(std::string(text));
  const bool has_leading_zero = digits.size() > 1 && digits[0] == '0' && is_digit(digits[1]);
  if (has_leading_zero) return std::nullopt;
  return number;
}

class YamlReader {
 public:
  YamlReader(std::string_view text, std::string_view where) : where_(where) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    const char* const begin = text.empty() ? "" : text.data();  // null isn't taken
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(begin),
                                 text.size());
  }
  ~YamlReader() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;

  std::vector<ConfigEntry> read() {
    next();  // the stream's start
    if (next() == YAML_STREAM_END_EVENT) return {};
    const auto& start = event_.data.document_start;
    if (start.version_directive != nullptr ||
        start.tag_directives.start != start.tag_directives.end) {
      refuse("directives");
    }
    next();
    if (event_.type == YAML_MAPPING_START_EVENT) {
      read_table("", 0);
    } else if (event_.type != YAML_SCALAR_EVENT || !value(0).is_null()) {
      fail("expected KEY: VALUE");
    }
    next();  // the document's end
    if (next() != YAML_STREAM_END_EVENT) refuse("several documents");
    return std::move(entries_);
  }

 private:
  yaml_event_type_t next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) == 0) {
      const bool is_placed = parser_.error != YAML_READER_ERROR;
      fail_at(is_placed ? parser_.problem_mark : parser_.mark,
              fmt::format("{}{}{}", parser_.problem == nullptr ? "no memory" : parser_.problem,
                          parser_.context == nullptr ? "" : " ",
                          parser_.context == nullptr ? "" : parser_.context));
    }
    return event_.type;
  }
  [[noreturn]] void fail_at(const yaml_mark_t& mark, std::string_view what,
                            ErrorCode code = ErrorCode::invalid) const {
    throw Error(code, fmt::format("{}:{}: {}", where_, mark.line + 1, what));
  }
  [[noreturn]] void fail(std::string_view what, ErrorCode code = ErrorCode::invalid) const {
    fail_at(event_.start_mark, what, code);
  }
  [[noreturn]] void refuse(std::string_view what) const {
    fail(fmt::format("{} are not supported here", what), ErrorCode::unsupported);
  }

  // Refuses what the start of a node may carry.
  void check_node(const unsigned char* anchor, const unsigned char* tag) const {
    if (anchor != nullptr) refuse("anchors and aliases");
    if (tag != nullptr) refuse("tags");
  }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length};
  }
  bool is_plain() const { return event_.data.scalar.style == YAML_PLAIN_SCALAR_STYLE; }

  // The key of the next pair of a mapping, or nothing at its end; the event is its value's then.
  std::optional<std::string> next_key(int& line) {
    if (next() == YAML_MAPPING_END_EVENT) return std::nullopt;
    if (event_.type == YAML_ALIAS_EVENT) refuse("anchors and aliases");
    if (event_.type != YAML_SCALAR_EVENT) fail("expected a key that is a text");
    check_node(event_.data.scalar.anchor, event_.data.scalar.tag);
    if (is_plain() && text() == "<<") refuse("merge keys");
    line = static_cast<int>(event_.start_mark.line) + 1;
    std::string key(text());
    next();
    return key;
  }

  // The mapping that the event begins: its pairs are entries of `table`.
  void read_table(const std::string& table, int depth) {
    check_node(event_.data.mapping_start.anchor, event_.data.mapping_start.tag);
    if (depth > kMaxYamlDepth) fail("mappings are nested too deeply");
    int line = 0;
    while (const std::optional<std::string> key = next_key(line)) {
      if (!keys_.emplace(table, *key).second) fail_twice(*key);
      if (event_.type == YAML_MAPPING_START_EVENT &&
          event_.data.mapping_start.style != YAML_FLOW_MAPPING_STYLE) {
        read_table(table.empty() ? *key : table + "." + *key, depth + 1);
      } else {
        Json of_key = value(depth);
        entries_.push_back({table, *key, std::move(of_key), line});
      }
    }
  }

  Json value(int depth) {
    if (depth > kMaxYamlDepth) fail("lists and mappings are nested too deeply");
    switch (event_.type) {
      case YAML_SCALAR_EVENT:
        return scalar();
      case YAML_SEQUENCE_START_EVENT: {
        check_node(event_.data.sequence_start.anchor, event_.data.sequence_start.tag);
        Json::Array items;
        while (next() != YAML_SEQUENCE_END_EVENT) items.push_back(value(depth + 1));
        return items;
      }
      case YAML_MAPPING_START_EVENT: {
        check_node(event_.data.mapping_start.anchor, event_.data.mapping_start.tag);
        Json::Object members;
        int line = 0;
        while (std::optional<std::string> key = next_key(line)) {
          const auto is_same = [&](const Json::Member& member) { return member.first == *key; };
          if (std::ranges::any_of(members, is_same)) fail_twice(*key);
          members.emplace_back(std::move(*key), value(depth + 1));
        }
        return members;
      }
      default:
        refuse("anchors and aliases");
    }
  }

  Json scalar() const {
    check_node(event_.data.scalar.anchor, event_.data.scalar.tag);
    if (!is_plain()) return std::string(text());
    std::optional<Json> plain = plain_yaml_scalar(text());
    if (plain) return std::move(*plain);
    fail(fmt::format("found {}: write a number without leading zeros, or a text in quotes",
                     shown_text(text())));
  }
  [[noreturn]] void fail_twice(std::string_view key) const {
    fail(fmt::format("the key {} is set twice", key));
  }

  std::string_view where_;
  yaml_parser_t parser_;
  yaml_event_t event_ = {};
  std::set<std::pair<std::string, std::string>> keys_;  // table, key
  std::vector<ConfigEntry> entries_;
};

}  // namespace

std::vector<ConfigEntry> parse_yaml(std::string_view text, std::string_view where) {
  if (!is_valid_utf8(text)) throw error_of(ErrorCode::invalid, "{}: not valid UTF-8", where);
  return YamlReader(text, where).read();
}

}  // namespace paceline
