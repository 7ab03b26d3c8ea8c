// Any bytes are either a config file, whose entries read the same after being written, or an Error.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/toml.h"
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
  if (value.is_string()) return quoted_text(value.as_string(""));
  if (value.is_bool()) return value.as_bool("") ? "true" : "false";
  if (value.is_integer()) {
    return value.is_negative() ? std::to_string(value.as_int(""))
                               : std::to_string(value.as_uint(""));
  }
  if (value.is_number()) return fmt::format("{:.17e}", value.as_double(""));
  if (value.is_array()) {
    for (const Json& item : value.as_array("")) result += written(item) + ",\n";
    return "[" + result + "]";
  }
  for (const auto& [key, member] : value.as_object("")) {
    result += quoted_text(key) + " = " + written(member) + ",";
  }
  return "{" + result + "}";
}

std::string written(const std::vector<ConfigEntry>& entries) {
  std::string text;
  for (const ConfigEntry& entry : entries) {
    text += fmt::format("[{}]\n{} = {}\n", quoted_text(entry.table), quoted_text(entry.key),
                        written(entry.value));
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::check_config_text(data, size, parse_toml,
                          [](const auto& entries) { return written(entries); });
  return 0;
}
