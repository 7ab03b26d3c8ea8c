// Calls of earlier turns whose arguments aren't the JSON of an object: mostly, they were cut off.
#pragma once

#include <functional>
#include <string>

#include "paceline/chat_template.h"

namespace paceline {

// Calls `render` with the conversation, where calls may have such arguments as a string. They stand
// in the prompt as they are; where the template would write them otherwise, or fails, as the object
// {"invalid_arguments": TEXT}, or with `are_text` (CallMessageShape) as the text of that object.
std::string render_with_cut_arguments(const ChatInput& input, bool are_text,
                                      const std::function<std::string(const ChatInput&)>& render);

}  // namespace paceline
