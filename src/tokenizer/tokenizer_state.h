// Tokenizer::State: the parts of a loaded tokenizer.
#pragma once

#include <utility>

#include "paceline/tokenizer.h"
#include "tokenizer/bpe_tokenizer.h"
#include "tokenizer/named_tokens.h"

namespace paceline {

struct Tokenizer::State {
  State(TokenizerFile file, const TokenizerConfig& config, std::string_view where)
      : bpe(std::move(file), where), named(find_named_tokens(config, bpe)) {}

  BpeTokenizer bpe;
  NamedTokens named;
};

}  // namespace paceline
