// Any bytes are either a config file in YAML, whose scalars read the same after being written, or
// an Error.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/yaml.h"
#include "fuzz/config_text.h"

namespace {

using namespace paceline;

std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string written(const Json& value) {
  std::string result;
  if (value.is_null()) return "null";
  if (value.is_string()) return quoted_text(value.as_string(""));
  if (value.is_bool()) return value.as_bool("") ? "yes" : "no";
  if (value.is_integer()) {
    return value.is_negative() ? std::to_string(value.as_int(""))
                               : std::to_string(value.as_uint(""));
  }
  if (value.is_number()) {
    const double number = value.as_double("");
    if (number - number != 0) return number > 0 ? ".inf" : "-.inf";
    return fmt::format("{:.17e}", number);
  }
  if (value.is_array()) {
    for (const Json& item : value.as_array("")) result += written(item) + ",\n";
    return "[" + result + "]";
  }
  for (const auto& [key, member] : value.as_object("")) {
    result += quoted_text(key) + ": " + written(member) + ",";
  }
  return "{" + result + "}";
}

// The tables are left out: they are names of keys that stand further in.
std::string written(const std::vector<ConfigEntry>& entries) {
  std::string text;
  for (size_t i = 0; i < entries.size(); ++i) {
    text += fmt::format("{}: {}\n", i, written(entries[i].value));
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::check_config_text(data, size, parse_yaml,
                          [](const auto& entries) { return written(entries); });
  return 0;
}
