// What holds for every text that a parser of config files takes.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/config_text.h"

namespace paceline::fuzz {

// What a notation writes in its own way.
struct ConfigNotation {
  std::string_view between;  // key and value
  std::string_view infinity;
};

inline std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

inline std::string written(const Json& value, const ConfigNotation& as) {
  if (value.is_null()) return "null";
  if (value.is_string()) return quoted_text(value.as_string(""));
  if (value.is_bool()) return value.as_bool("") ? "true" : "false";
  if (value.is_integer()) {
    return value.is_negative() ? std::to_string(value.as_int(""))
                               : std::to_string(value.as_uint(""));
  }
  if (value.is_number()) {
    const double number = value.as_double("");
    if (number - number != 0) return fmt::format("{}{}", number < 0 ? "-" : "", as.infinity);
    return fmt::format("{:.17e}", number);
  }
  std::string result;
  if (value.is_array()) {
    for (const Json& item : value.as_array("")) result += written(item, as) + ",\n ";
    return "[" + result + "]";
  }
  for (const auto& [key, member] : value.as_object("")) {
    if (!result.empty()) result += ", ";
    result.append(quoted_text(key)).append(as.between).append(written(member, as));
  }
  return "{" + result + "}";
}

// The tables are left out: they are names of keys that stand further out.
inline std::string written(const std::vector<ConfigEntry>& entries, const ConfigNotation& as) {
  std::string text;
  for (size_t i = 0; i < entries.size(); ++i) {
    text += fmt::format("{}{}{}\n", i, as.between, written(entries[i].value, as));
  }
  return text;
}

// The text is refused with its place, or has entries in the order of their lines that are the same
// again when they are written and read.
template <class Parse>
void check_config_text(const uint8_t* bytes, size_t size, Parse&& parse, const ConfigNotation& as) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  std::vector<ConfigEntry> entries;
  try {
    entries = parse(text, "input");
  } catch (const Error& error) {
    PL_CHECK(error.code() == ErrorCode::invalid || error.code() == ErrorCode::unsupported,
             "an error of another kind");
    PL_CHECK(std::string_view(error.what()).starts_with("input:"), "an error without its place");
    PL_CHECK(is_valid_utf8(error.what()), "an error that isn't UTF-8");
    return;
  }
  int last_line = 1;
  for (const ConfigEntry& entry : entries) {
    PL_CHECK(entry.line >= last_line, "lines out of order");
    last_line = entry.line;
  }
  const std::string again = written(entries, as);
  PL_CHECK(written(parse(again, "again"), as) == again, "written and read, it differs");
}

}  // namespace paceline::fuzz
