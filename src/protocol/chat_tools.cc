#include "protocol/chat_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "chat/message_json.h"
#include "protocol/client_fields.h"
#include "protocol/request_reader.h"

namespace paceline {
namespace {

constexpr uint64_t kMaxNameBytes = 64;

struct ToolFields {
  ToolSpec spec;
};

bool is_name_byte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_' || byte == '-';
}

void read_name(const FieldValue& value, ToolFields& tool) {
  tool.spec.name = value.text();
  if (!std::all_of(tool.spec.name.begin(), tool.spec.name.end(), is_name_byte)) {
    value.refuse("1 to 64 letters, digits, _ and -");
  }
}

constexpr FieldDef<ToolFields> kToolFunctionFields[] = {
    {.name = "name",
     .type = text_type(1, kMaxNameBytes),
     .is_required = true,
     .help = "1 to 64 letters, digits, _ and -.",
     .read = read_name},
    {.name = "description", .type = kAnyText, .help = "What it does."},
    {.name = "parameters",
     .type = kAnyObject,
     .help = "A JSON Schema of its arguments, which calls obey.",
     .read = [](const FieldValue& v, ToolFields& t) { t.spec.parameters = to_json(v.json()); }},
    {.name = "strict",
     .type = kBoolean,
     .by_default = false,
     .help = "Refuse parameters with a part that can't be enforced, or a format that isn't known; "
             "else such parts are left out and named in the answer's warnings.",
     .read = [](const FieldValue& v, ToolFields& t) { t.spec.is_strict = v.boolean(); }},
};

FieldList tool_function_fields() {
  FieldList list = list_fields<ToolFields>(kToolFunctionFields);
  append_client_fields(FieldLevel::tool_function, list);
  return list;
}

void read_function(const FieldValue& value, ToolFields& tool) {
  RequestReader reader(value);
  reader.read<ToolFields>(kToolFunctionFields, tool);
  read_client_fields(FieldLevel::tool_function, reader);
  reader.finish();
}

constexpr FieldDef<ToolFields> kToolFields[] = {
    {.name = "type", .type = kOnlyFunction, .is_required = true, .help = "Only function."},
    {.name = "function",
     .type = object_type(tool_function_fields),
     .is_required = true,
     .help = "Name, description and parameters.",
     .read = read_function},
};

// What the template shows: the tool without its client's marks.
Json shown_tool(const Json& tool) {
  const Json& function = *tool.find_value("function");
  return with_member(without_client_fields(tool, FieldLevel::tool), "function",
                     without_client_fields(function, FieldLevel::tool_function));
}

struct NamedTool {
  std::string name;
};

constexpr FieldDef<NamedTool> kNamedFunctionFields[] = {
    {.name = "name",
     .type = text_type(1, kMaxNameBytes),
     .is_required = true,
     .help = "The function to call.",
     .read = [](const FieldValue& v, NamedTool& t) { t.name = v.text(); }},
};

constexpr FieldDef<NamedTool> kNamedToolFields[] = {
    {.name = "type", .type = kOnlyFunction, .is_required = true, .help = "Only function."},
    {.name = "function",
     .type = object_type(fields_of<kNamedFunctionFields>),
     .is_required = true,
     .help = "Its name.",
     .read = read_members<kNamedFunctionFields>},
};

}  // namespace

FieldList named_tool_fields() { return list_fields<NamedTool>(kNamedToolFields); }

void read_tool_choice(const FieldValue& value, TurnRequest& turn) {
  if (!value.json().is_string()) {
    NamedTool tool;
    RequestReader reader(value);
    reader.read<NamedTool>(kNamedToolFields, tool);
    reader.finish();
    turn.tool_choice = ToolChoice::named;
    turn.tool_name = std::move(tool.name);
    return;
  }
  const std::string& word = value.text();
  turn.tool_choice = word == "none"   ? ToolChoice::none
                     : word == "auto" ? ToolChoice::automatic
                                      : ToolChoice::required;
}

FieldList tool_fields() {
  FieldList list = list_fields<ToolFields>(kToolFields);
  append_client_fields(FieldLevel::tool, list);
  return list;
}

std::string read_tools(const FieldValue& value, TurnRequest& turn) {
  Json::Array shown;
  for (const FieldValue& item : value.items()) {
    ToolFields tool;
    RequestReader reader(item);
    reader.read<ToolFields>(kToolFields, tool);
    read_client_fields(FieldLevel::tool, reader);
    reader.finish();
    turn.tools.push_back(std::move(tool.spec));
    shown.push_back(shown_tool(item.json()));
  }
  return tools_text(value, std::move(shown));
}

std::string tools_text(const FieldValue& value, Json::Array tools) {
  if (tools.empty()) return {};
  std::string json = to_json(Json(std::move(tools)));
  if (json.size() > kMaxToolBytes) {
    throw invalid_field(value.path(),
                        fmt::format("{} bytes, expected at most {}", json.size(), kMaxToolBytes));
  }
  return json;
}

}  // namespace paceline
