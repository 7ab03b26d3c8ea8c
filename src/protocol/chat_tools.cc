#include "protocol/chat_tools.h"

#include <algorithm>
#include <cctype>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "chat/message_json.h"
#include "protocol/request_fields.h"

namespace paceline {
namespace {

constexpr uint64_t kMaxNameBytes = 64;

bool is_name_byte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_' || byte == '-';
}

void read_name(const FieldValue& value, ToolSpec& tool) {
  tool.name = value.text();
  if (!std::all_of(tool.name.begin(), tool.name.end(), is_name_byte)) {
    value.refuse("1 to 64 letters, digits, _ and -");
  }
}

constexpr FieldDef<ToolSpec> kToolFunctionFields[] = {
    required("name", text_type(1, kMaxNameBytes), "1 to 64 letters, digits, _ and -.", read_name),
    field("description", kAnyText, "What it does."),
    field("parameters", kAnyObject, "A JSON Schema of its arguments, which calls obey.",
          [](const FieldValue& v, ToolSpec& t) { t.parameters = to_json(v.json()); }),
    field("strict", kBoolean, kStrictParametersHelp, kOff, store<&ToolSpec::is_strict>),
};

constexpr FieldDef<ToolSpec> kToolFields[] = {
    required("type", kOnlyFunction, "Only function."),
    required(object<kToolFunctionFields, FieldLevel::tool_function>(
        "function", "Name, description and parameters.")),
};

// What the template shows: the tool without its client's marks.
Json shown_tool(const Json& tool) {
  const Json& function = *tool.find_value("function");
  return with_member(without_client_fields(tool, FieldLevel::tool), "function",
                     without_client_fields(function, FieldLevel::tool_function));
}

constexpr FieldDef<ChatOptions> kNamedFunctionFields[] = {
    required("name", text_type(1, kMaxNameBytes), "The function to call.",
             store<&ChatOptions::tool_name>),
};

constexpr FieldDef<ChatOptions> kNamedToolFields[] = {
    required("type", kOnlyFunction, "Only function."),
    required(object<kNamedFunctionFields>("function", "Its name.")),
};

}  // namespace

bool begins_like(std::string_view type, std::span<const std::string_view> kinds) {
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](std::string_view kind) { return type.starts_with(kind); });
}

FieldList named_tool_fields() { return fields_of<kNamedToolFields>(); }

void read_tool_choice(const FieldValue& value, TurnRequest& turn) {
  if (!value.json().is_string()) {
    turn.tool_choice = ToolChoice::named;
    return read_members<kNamedToolFields>(value, turn);
  }
  turn.tool_choice = value.one_of<ToolChoice>(kToolChoiceWords);
}

FieldList tool_fields() { return fields_of<kToolFields, FieldLevel::tool>(); }

std::string read_tools(const FieldValue& value, TurnRequest& turn) {
  Json::Array shown;
  for (const FieldValue& item : value.items()) {
    turn.tools.push_back(read_object<kToolFields, FieldLevel::tool>(item));
    shown.push_back(shown_tool(item.json()));
  }
  return tools_text(value, std::move(shown));
}

std::string tools_text(const FieldValue& value, Json::Array tools) {
  if (tools.empty()) return {};
  std::string json = to_json(Json(std::move(tools)));
  if (json.size() > kMaxToolBytes) {
    throw invalid_field(value.path(), "{} bytes, expected at most {}", json.size(), kMaxToolBytes);
  }
  return json;
}

}  // namespace paceline
