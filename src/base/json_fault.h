// Finds where and why a text is not JSON, for messages to its author.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

struct JsonFault {
  size_t line = 1;
  size_t column = 1;  // in characters
  std::string reason;

  // "line 3, column 7: REASON"
  std::string text() const;
  // "column 7: REASON"
  std::string text_in_line() const;
};

// The first fault of a text that a JSON parser has rejected; nothing when there is none. Slower
// than a parser: only for messages.
std::optional<JsonFault> find_json_fault(std::string_view text, size_t max_depth);

}  // namespace paceline
