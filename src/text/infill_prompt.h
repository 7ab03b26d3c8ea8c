// Encodes prompts for the text between a prefix and a suffix (fill in the middle).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/text_model.h"

namespace paceline {

// A tokenizer's fill-in-the-middle tokens, found by their names in known models.
struct InfillTokens {
  TokenId prefix = 0;
  TokenId suffix = 0;
  TokenId middle = 0;
  std::optional<TokenId> repository;
  std::optional<TokenId> file;
  std::vector<TokenId> ends;  // stop tokens beside the end of sequence
};

// Nothing for a model that wasn't trained for it.
std::optional<InfillTokens> find_infill_tokens(const Tokenizer& tokenizer);

struct InfillPrompt {
  std::string prefix;
  std::string suffix;
  std::string beginning;                                   // of the text in the gap
  std::vector<std::pair<std::string, std::string>> files;  // of the project: name and text
};

// Prefix, suffix, middle, each after its token; before them the files, after tokens of their own if
// the model has some. Special tokens written in the texts are encoded as text.
std::vector<TokenId> encode_infill(const Tokenizer& tokenizer, const InfillTokens& tokens,
                                   const InfillPrompt& prompt);

}  // namespace paceline
