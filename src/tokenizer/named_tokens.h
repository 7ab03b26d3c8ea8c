// NamedTokens: the tokens that the files beside tokenizer.json name, such as BOS and stop tokens.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "paceline/tokenizer.h"
#include "tokenizer/bpe_tokenizer.h"
#include "tokenizer/tokenizer_config.h"

namespace paceline {

struct NamedTokens {
  std::optional<TokenId> bos;
  std::optional<TokenId> pad;
  std::vector<TokenId> stops;  // ascending
  std::vector<std::pair<std::string, std::string>> special;
};

// Tokens that don't exist are neither bos nor pad nor stops.
NamedTokens find_named_tokens(const TokenizerConfig& config, const BpeTokenizer& tokenizer);

}  // namespace paceline
