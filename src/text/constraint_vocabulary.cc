#include "text/constraint_vocabulary.h"

#include <memory>

#include "paceline/error.h"
#include "text/text_tokens.h"

namespace paceline {

ConstraintVocabulary constraint_vocabulary(const Tokenizer& tokenizer) {
  const auto tokens = std::make_shared<const TextTokens>(tokenizer);
  return {.trie = std::make_shared<const TokenTrie>(tokens->bytes()),
          .tokenise = [tokens](std::string_view text) -> std::vector<uint32_t> {
            try {
              const std::vector<TokenId> ids = tokens->tokens_of(text);
              return {ids.begin(), ids.end()};
            } catch (const Error&) {
              return {};
            }
          }};
}

}  // namespace paceline
