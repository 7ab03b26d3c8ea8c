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

// `wanted` is a file, the name of one of the model's templates or that of a built-in format; empty:
// the model's own, else the built-in format that the tokenizer's turn tokens belong to. A model's
// own template that doesn't parse is a problem of chats alone; a wanted one that doesn't exist or
// parse throws Error invalid.
ChatSetup set_up_chat(const ModelFiles& files, const std::string& wanted,
                      const Tokenizer& tokenizer);

// Renders a conversation and reports markers that aren't single tokens, and assistant's turns that
// end without a stop token. `stop_tokens` is ascending.
std::vector<std::string> check_chat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                    const std::vector<TokenId>& stop_tokens);

}  // namespace paceline
