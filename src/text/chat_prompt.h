// Renders a conversation with the model's chat template.
#pragma once

#include <string>
#include <vector>

#include "paceline/chat_template.h"
#include "paceline/options.h"
#include "text/text_model.h"

namespace paceline {

// Uses the model's special tokens when the input has none, and explains tools in the prompt where
// the template writes no calls. Throws Error not_found when the model has no chat template, and
// what ChatTemplate::render throws.
std::string render_chat(const TextModel& model, const ChatInput& input);

// The token ids of a rendered conversation; sets the defaults of chats in `options`.
std::vector<TokenId> encode_chat_text(const TextModel& model, const std::string& prompt,
                                      GenerateOptions& options);
// Of render_chat()'s text.
std::vector<TokenId> encode_chat(const TextModel& model, const ChatInput& input,
                                 GenerateOptions& options);

}  // namespace paceline
