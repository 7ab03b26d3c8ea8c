// Reads TOML through toml++, of which this is the only source that includes it.
#include <stdexcept>

namespace {
// toml++ 3.3 asserts what a table's malformed name, as in [=], violates.
constexpr void expect_of_toml(bool holds) {
  if (!holds) throw std::logic_error("a malformed key");
}
}  // namespace
#undef NDEBUG
#define TOML_ASSERT(condition) expect_of_toml(static_cast<bool>(condition))
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "base/json_cursor.h"
#include "base/utf8.h"
#include "cli/config_text.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr int kMaxDots = 1000;  // each dot of a key nests a table, and freeing tables recurses

[[noreturn]] void fail(std::string_view where, size_t line, std::string_view what,
                       ErrorCode code = ErrorCode::invalid) {
  throw Error(code, fmt::format("{}:{}: {}", where, line, what));
}

// Line `number` of the text, from 1.
std::string_view line_of(std::string_view text, size_t number) {
  for (; number > 1; --number) text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  return text.substr(0, text.find_first_of("\r\n"));
}

// The first line that begins with [ and a character that begins no key.
size_t line_of_malformed_table(std::string_view text) {
  for (size_t line = 1, at = 0; at < text.size(); ++line) {
    at = text.find_first_not_of(" \t", at);
    if (at != text.npos && text[at] == '[') {
      at = text.find_first_not_of(" \t[", at);
      const bool begins = at != text.npos && (std::isalnum(static_cast<unsigned char>(text[at])) ||
                                              std::strchr("_-\"'", text[at]) != nullptr);
      if (!begins) return line;
    }
    at = text.find('\n', at);
    if (at != text.npos) ++at;
  }
  return 1;
}

void refuse_deep_keys(std::string_view text, std::string_view where) {
  size_t line = 1;
  int dots = 0;
  for (const char c : text) {
    if (c == '\n') ++line;
    if (c == '\n' || c == '=') dots = 0;
    if (c == '.' && ++dots > kMaxDots) {
      fail(where, line, fmt::format("more than {} points without a =", kMaxDots));
    }
  }
}

Json json_of(const toml::node& node, std::string_view where) {
  const size_t line = node.source().begin.line;
  if (const auto* table = node.as_table()) {
    Json::Object members;
    for (const auto& [key, value] : *table) {
      members.emplace_back(key.str(), json_of(value, where));
    }
    return members;
  }
  if (const auto* array = node.as_array()) {
    Json::Array items;
    for (const toml::node& item : *array) items.push_back(json_of(item, where));
    return items;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* truth = node.as_boolean()) return truth->get();
  const auto* number = node.as_floating_point();
  if (number == nullptr) {
    fail(where, line, "dates and times are not supported here", ErrorCode::unsupported);
  }
  if (std::isnan(number->get())) fail(where, line, "found nan, expected a number");
  return number->get();
}

void add_entries(const toml::table& table, const std::string& name, std::string_view where,
                 std::vector<ConfigEntry>& entries) {
  for (const auto& [key, value] : table) {
    const toml::table* const inner = value.as_table();
    if (inner != nullptr && !inner->is_inline()) {
      const std::string path(key.str());
      add_entries(*inner, name.empty() ? path : name + "." + path, where, entries);
    } else {
      entries.push_back({name, std::string(key.str()), json_of(value, where),
                         static_cast<int>(key.source().begin.line)});
    }
  }
}

}  // namespace

std::vector<ConfigEntry> parse_toml(std::string_view text, std::string_view where) {
  if (!is_valid_utf8(text)) {
    throw Error(ErrorCode::invalid, fmt::format("{}: not valid UTF-8", where));
  }
  refuse_deep_keys(text, where);
  std::vector<ConfigEntry> entries;
  try {
    add_entries(toml::parse(text), "", where, entries);
  } catch (const toml::parse_error& error) {
    const size_t line = error.source().begin.line;
    fail(where, line,
         fmt::format("{}; found {}, expected KEY = VALUE with texts in quotes", error.description(),
                     shown_text(line_of(text, line))));
  } catch (const std::logic_error&) {
    fail(where, line_of_malformed_table(text), "expected a table's name after [");
  }
  std::ranges::stable_sort(entries, {}, &ConfigEntry::line);
  return entries;
}

}  // namespace paceline
