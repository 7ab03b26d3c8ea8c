// The tools of a chat request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/field_info.h"
#include "protocol/field_value.h"

namespace paceline {

constexpr uint64_t kMaxTools = 128;
constexpr uint64_t kMaxToolBytes = 256 << 10;  // all of `tools`, as JSON

FieldList tool_fields();
inline constexpr FieldType kTool = object_type(tool_fields);
inline constexpr FieldType kTools = array_type(kTool, 0, kMaxTools);

inline constexpr std::string_view kToolChoiceWords[] = {"none", "auto"};
inline constexpr FieldType kToolChoices = only_words_type(kToolChoiceWords);

// The array as JSON for the template, every tool checked; empty when there is none.
std::string read_tools(const FieldValue& value);

}  // namespace paceline
