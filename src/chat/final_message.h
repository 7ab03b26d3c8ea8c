// Leaves a conversation's last message open for the model to continue (continue_final_message of
// transformers).
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace paceline {

// The message with a mark behind its text: its content, or the content's last text part. Throws
// Error invalid when it has no text.
Json mark_final_message(const Json& message);

// The prompt up to the mark, without blanks before it if the template trimmed the text. Throws
// Error invalid when the template dropped some text of `message`, which has no mark.
std::string cut_at_mark(std::string rendered, const Json& message);

}  // namespace paceline
