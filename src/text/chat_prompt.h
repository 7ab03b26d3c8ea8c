// Renders a conversation with the model's chat template.
#pragma once

#include <string>
#include <vector>

#include "paceline/chat_template.h"
#include "paceline/options.h"
#include "text/text_model.h"

namespace paceline {

// With the model's special tokens when the input has none. Throws Error not_found when the model
// has no chat template, else what ChatTemplate::render does.
std::string render_chat(const TextModel& model, const ChatInput& input);

// The token ids of what render_chat returns; sets what a chat leaves open in its options.
std::vector<TokenId> encode_chat(const TextModel& model, const ChatInput& input,
                                 GenerateOptions& options);

}  // namespace paceline
