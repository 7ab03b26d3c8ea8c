#include "protocol/chat_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/json_writer.h"
#include "protocol/api_error.h"
#include "protocol/request_fields.h"

namespace paceline {
namespace {

constexpr size_t kMaxNameBytes = 64;

struct Tool {};

bool is_name_byte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_' || byte == '-';
}

void read_name(const FieldValue& value, Tool&) {
  const std::string& name = value.text();
  if (name.empty() || name.size() > kMaxNameBytes ||
      !std::all_of(name.begin(), name.end(), is_name_byte)) {
    value.refuse("1 to 64 letters, digits, _ and -");
  }
}

constexpr FieldDef<Tool> kFunctionFields[] = {
    {.name = "name", .help = "1 to 64 letters, digits, _ and -.", .read = read_name},
    {.name = "description",
     .help = "What it does.",
     .read = [](const FieldValue& v, Tool&) { v.text(); }},
    {.name = "parameters",
     .help = "A JSON Schema.",
     .read = [](const FieldValue& v, Tool&) { v.object(); }},
    {.name = "strict",
     .help = "Only false.",
     .read = [](const FieldValue& v, Tool&) { v.only(false); }},
};

constexpr FieldDef<Tool> kToolFields[] = {
    {.name = "type",
     .help = "Only function.",
     .read =
         [](const FieldValue& v, Tool&) {
           if (v.text() != "function") v.refuse_unsupported("\"function\"");
         }},
    {.name = "function",
     .help = "Name, description and parameters.",
     .read =
         [](const FieldValue& v, Tool& t) {
           RequestReader reader(v);
           reader.read<Tool>(kFunctionFields, t);
           reader.require("name");
           reader.finish();
         }},
};

}  // namespace

std::string read_tools(const FieldValue& value) {
  const auto items = value.items(kMaxTools);
  for (const FieldValue& item : items) {
    Tool tool;
    RequestReader reader(item);
    reader.read<Tool>(kToolFields, tool);
    reader.require("type");
    reader.require("function");
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

ToolChoice read_tool_choice(const FieldValue& value) {
  if (value.json().is_string()) {
    if (value.text() == "auto") return ToolChoice::automatic;
    if (value.text() == "none") return ToolChoice::none;
    if (value.text() != "required") value.refuse("\"none\" or \"auto\"");
  }
  value.refuse_unsupported("\"none\" or \"auto\"");
}

}  // namespace paceline
