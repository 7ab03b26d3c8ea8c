// The tools of a chat request.
#pragma once

#include <cstdint>
#include <string>

#include "protocol/field_value.h"

namespace paceline {

enum class ToolChoice : uint8_t { automatic, none };

// The array as JSON for the template, every tool checked; empty when there is none.
std::string read_tools(const FieldValue& value);

ToolChoice read_tool_choice(const FieldValue& value);

}  // namespace paceline
