// Writes texts under a grammar as a model would, token by token, and checks the masks on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/matcher.h"
#include "paceline/error.h"

namespace paceline::fuzz {

// Small limits find their ends soon.
inline constexpr GrammarLimits kSmallGrammarLimits{
    .regexes = {.max_nodes = 20'000, .max_alternatives = 500, .max_search = 500},
    .max_states = 5'000,
    .max_terminals = 5'000};
inline constexpr WalkerLimits kSmallWalkerLimits{.max_lexer_states = 5'000,
                                                 .max_items = 2'000,
                                                 .max_mask_steps = 200'000,
                                                 .kept_masks_bytes = 1 << 16};

inline void require(bool condition) {
  if (!condition) std::abort();
}

// Each byte is a token.
inline std::vector<std::string> byte_tokens() {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  return bytes;
}

// The `index`th of the allowed tokens, of which there is at least one.
inline uint32_t allowed_token(const TokenSet& mask, size_t index) {
  size_t left = index % mask.num_allowed();
  uint32_t token = 0;
  while (!mask.allows(token) || left-- > 0) ++token;
  return token;
}

// Follows allowed bytes, which `choices` choose. Gives the text if it may end where it ends.
inline std::string write_bytes(Grammar grammar, std::string_view choices, size_t max_bytes) {
  static const auto trie = std::make_shared<const TokenTrie>(byte_tokens());
  Matcher matcher(std::make_shared<Constraint>(std::move(grammar), trie));
  std::string text;
  for (size_t i = 0; i < choices.size() && i < max_bytes; ++i) {
    const auto mask = matcher.mask();
    require(mask->num_allowed() > 0 || matcher.is_complete());
    if (mask->num_allowed() == 0) break;
    const uint32_t token = allowed_token(*mask, static_cast<uint8_t>(choices[i]));
    require(matcher.accept(token));
    require(!mask->allows(255) && !mask->allows(254));  // no byte of UTF-8
    text += static_cast<char>(token);
  }
  return matcher.is_complete() ? text : "";
}

// A malformed input or one over a limit, never a failure of the program.
inline void require_refusal(const Error& error) {
  require(error.code() == ErrorCode::invalid || error.code() == ErrorCode::unsupported ||
          error.code() == ErrorCode::exhausted);
}

}  // namespace paceline::fuzz
