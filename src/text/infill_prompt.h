// The prompt that asks a model for the text between a prefix and a suffix (fill in the middle).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/text_model.h"

namespace paceline {

// A tokenizer's fill-in-the-middle tokens, found by the names that models give them.
struct InfillTokens {
  TokenId prefix = 0;
  TokenId suffix = 0;
  TokenId middle = 0;
  std::optional<TokenId> repository;
  std::optional<TokenId> file;
  std::vector<TokenId> ends;  // what may end the text beside the end of sequence
};

// Nothing for a model that wasn't trained to fill in.
std::optional<InfillTokens> find_infill_tokens(const Tokenizer& tokenizer);

struct InfillPrompt {
  std::string prefix;
  std::string suffix;
  std::string beginning;                                   // of the text in the gap
  std::vector<std::pair<std::string, std::string>> files;  // of the project: name and text
};

// Prefix, suffix, middle, each behind its token; files before them, behind tokens of their own
// where the model has some. Special tokens written in the texts are text.
std::vector<TokenId> encode_infill(const Tokenizer& tokenizer, const InfillTokens& tokens,
                                   const InfillPrompt& prompt);

}  // namespace paceline
