// The tools of a chat request.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "protocol/field_type.h"
#include "protocol/field_value.h"
#include "text/chat_turn.h"

namespace paceline {

constexpr uint64_t kMaxTools = 128;
constexpr uint64_t kMaxToolBytes = 256 << 10;  // all of `tools`, as JSON

FieldList tool_fields();
inline constexpr FieldType kTool = object_type(tool_fields);
inline constexpr FieldType kTools = array_type(kTool, 0, kMaxTools);

// A word, or {"type": "function", "function": {"name": NAME}}.
inline constexpr std::string_view kToolChoiceWords[] = {"none", "auto", "required"};
FieldList named_tool_fields();
inline constexpr FieldType kToolChoiceKinds[] = {word_type(kToolChoiceWords),
                                                 object_type(named_tool_fields)};
inline constexpr FieldType kToolChoices =
    one_of_type(kToolChoiceKinds, "none, auto, required, or an object that names a function");

// Whether the type begins like one of these: an API's own kinds of tools, which have versions.
bool begins_like(std::string_view type, std::span<const std::string_view> kinds);

// Adds every tool to `turn`. Returns the array as JSON for the template; empty when there is none.
std::string read_tools(const FieldValue& value, TurnRequest& turn);
// The template's tools as JSON; empty when there are none. Throws RequestError when they are too
// long.
std::string tools_text(const FieldValue& value, Json::Array tools);
void read_tool_choice(const FieldValue& value, TurnRequest& turn);

}  // namespace paceline
