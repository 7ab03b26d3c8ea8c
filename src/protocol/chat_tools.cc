#include "protocol/chat_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/json_writer.h"
#include "protocol/api_error.h"
#include "protocol/request_reader.h"

namespace paceline {
namespace {

constexpr uint64_t kMaxNameBytes = 64;

struct Tool {};

bool is_name_byte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_' || byte == '-';
}

void read_name(const FieldValue& value, Tool&) {
  const std::string& name = value.text();
  if (!std::all_of(name.begin(), name.end(), is_name_byte)) {
    value.refuse("1 to 64 letters, digits, _ and -");
  }
}

constexpr FieldDef<Tool> kToolFunctionFields[] = {
    {.name = "name",
     .type = text_type(1, kMaxNameBytes),
     .is_required = true,
     .help = "1 to 64 letters, digits, _ and -.",
     .read = read_name},
    {.name = "description", .type = kAnyText, .help = "What it does."},
    {.name = "parameters", .type = kAnyObject, .help = "A JSON Schema."},
    {.name = "strict", .type = kOnlyFalse, .by_default = false, .help = "Only false."},
};

FieldList tool_function_fields() { return list_fields<Tool>(kToolFunctionFields); }

void read_function(const FieldValue& value, Tool& tool) {
  RequestReader reader(value);
  reader.read<Tool>(kToolFunctionFields, tool);
  reader.finish();
}

constexpr FieldDef<Tool> kToolFields[] = {
    {.name = "type", .type = kOnlyFunction, .is_required = true, .help = "Only function."},
    {.name = "function",
     .type = object_type(tool_function_fields),
     .is_required = true,
     .help = "Name, description and parameters.",
     .read = read_function},
};

}  // namespace

FieldList tool_fields() { return list_fields<Tool>(kToolFields); }

std::string read_tools(const FieldValue& value) {
  const auto items = value.items();
  for (const FieldValue& item : items) {
    Tool tool;
    RequestReader reader(item);
    reader.read<Tool>(kToolFields, tool);
    reader.finish();
  }
  if (items.empty()) return {};
  std::string json = to_json(value.json());
  if (json.size() > kMaxToolBytes) {
    throw RequestError(
        value.path(), "invalid_value",
        fmt::format("{}: {} bytes, expected at most {}", value.path(), json.size(), kMaxToolBytes));
  }
  return json;
}

}  // namespace paceline
