// A conversation's last message left open, so that its text goes on (transformers calls it
// continue_final_message).
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace paceline {

// The message with a mark behind its text: its content, or the last part of it that is text.
// Throws Error invalid when there is none.
Json mark_final_message(const Json& message);

// The prompt up to the mark; blanks in front of it go where the template trimmed the text. Throws
// Error invalid when the template left out some of the text of `message`, the one without a mark.
std::string cut_at_mark(std::string rendered, const Json& message);

}  // namespace paceline
