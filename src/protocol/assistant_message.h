// An assistant's message as OpenAI's API writes it.
#pragma once

#include <optional>
#include <string>

#include "base/json_writer.h"
#include "paceline/results.h"

namespace paceline {

// Writes the members role, content, reasoning_content, reasoning and tool_calls: of `turn` where
// the text was taken apart, else of `text`. The content of a turn of calls alone is null.
void write_assistant_message(JsonWriter& writer, const std::optional<std::string>& text,
                             const std::optional<TurnParts>& turn);

}  // namespace paceline
