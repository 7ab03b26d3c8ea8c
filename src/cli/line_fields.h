// The fields of one line of JSON input.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/json_cursor.h"
#include "cli/items.h"
#include "text/generation_options.h"

namespace paceline {

using FieldNames = std::span<const std::string_view>;

// The fields of `generate` and `chat` that are also options.
inline constexpr auto kGenerateFields = [] {
  std::array<std::string_view, kNumGenerationOptions> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kGenerationOptions[i].name;
  return names;
}();

// The object of a line; its errors follow the line's number.
inline JsonCursor line_cursor(const Json& line) { return {line, ""}; }

// Throws Error invalid with a suggestion for a key in none of the lists.
void check_line_keys(const Json& line, std::initializer_list<FieldNames> lists);

// Applies the line's options, each checked like its flag; a null counts as absent.
void apply_option_fields(const Json& line, FieldNames options, Settings& settings);

// A text or ids to work on.
struct InputItem {
  Prompt prompt;
  std::string field;  // of the line that has it; empty for a prompt of the command line
  Settings settings;  // with the line's options
};
// A line has the fields text or ids, and perhaps `options`.
InputItem read_input_item(const Item& item, const Settings& settings, FieldNames options = {});

// Reads exactly one of the two fields: text, or token ids.
Prompt read_prompt(const Json& line, std::string_view text_key, std::string_view ids_key);

}  // namespace paceline
