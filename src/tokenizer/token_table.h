// TokenTable: what every id stands for in decoded text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/vocabulary.h"

namespace paceline {

// Immutable.
class TokenTable {
 public:
  // The bytes are those of the ByteLevel decoder.
  TokenTable(const Vocabulary& vocabulary, const AddedTokens& added_tokens);

  // The highest id plus one.
  int64_t id_limit() const { return static_cast<int64_t>(entries_.size()); }
  // Empty, and not special, for an id without a token.
  std::string_view bytes(TokenId id) const;
  bool is_special(TokenId id) const;

 private:
  struct Entry {
    uint32_t begin = 0;
    uint32_t size : 31 = 0;
    uint32_t special : 1 = 0;
  };

  bool contains(TokenId id) const { return id >= 0 && id < id_limit(); }
  void set(TokenId id, std::string_view text, bool special);

  std::string bytes_;           // of all tokens, one behind the other
  std::vector<Entry> entries_;  // by id
};

}  // namespace paceline
