// A model's chat template, and notes about templates that don't fit the tokenizer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/model_files.h"
#include "paceline/chat_template.h"
#include "paceline/tokenizer.h"

namespace paceline {

struct ChatSetup {
  std::optional<ChatTemplate> chat_template;  // nothing: `problem` is the reason
  std::string problem;
  std::vector<std::string> notes;  // sentences for people
};

// `wanted` is a file, the name of one of the model's templates, or the name of a built-in format;
// empty: the model's own, else the built-in format of the tokenizer's turn tokens. If the model's
// own template can't be parsed, only chats fail; a wanted one that doesn't exist or can't be parsed
// throws Error invalid.
ChatSetup set_up_chat(const ModelFiles& files, const std::string& wanted,
                      const Tokenizer& tokenizer);

// Renders a conversation and reports markers that aren't single tokens, and assistant turns without
// a stop token at their end. `stop_tokens` is ascending.
std::vector<std::string> check_chat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                    const std::vector<TokenId>& stop_tokens);

}  // namespace paceline
