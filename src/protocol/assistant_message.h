// An assistant's message as OpenAI's API writes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "paceline/results.h"

namespace paceline {

// Writes the members role, content, `reasoning_field` and tool_calls: of `turn` where the text was
// taken apart, else of `text`. The content of a turn that is, or had to be, calls alone is null.
void write_assistant_message(JsonWriter& writer, const std::optional<std::string>& text,
                             const std::optional<TurnParts>& turn,
                             std::string_view reasoning_field = "reasoning_content");

}  // namespace paceline
