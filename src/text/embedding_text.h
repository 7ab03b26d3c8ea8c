// Makes the tokens that are embedded of a text, as sentence-transformers does: the chat template
// where the model is made for it, and the cut of a text that is too long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/embedding_config.h"
#include "text/text_model.h"

namespace paceline {

struct EmbeddedText {
  std::string text;
  std::string prompt;  // the text of a named one; empty: none
  std::string name;    // in messages
  bool add_special_tokens = true;
};

struct EmbeddedTokens {
  std::vector<TokenId> ids;
  int64_t prompt_tokens = 0;  // the first ones, which are the named prompt's; 0 in a chat
};

// Throws what encode_prompt and render_chat throw.
EmbeddedTokens encode_embedded_text(const TextModel& model, const EmbeddingConfig& config,
                                    const EmbeddedText& input);

}  // namespace paceline
