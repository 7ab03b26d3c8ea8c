// TokenTable: the decoded bytes of every id.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/token_decoder.h"
#include "tokenizer/vocabulary.h"

namespace paceline {

// Immutable.
class TokenTable {
 public:
  TokenTable(const Vocabulary& vocabulary, const AddedTokens& added_tokens,
             const TokenDecoder& decoder);

  // The highest id plus one.
  int64_t id_limit() const { return static_cast<int64_t>(entries_.size()); }
  // Empty, and not special, for an id without a token.
  std::string_view bytes(TokenId id) const;
  bool is_special(TokenId id) const;
  // Whether it is a byte of byte fallback, which is decoded together with its neighbours.
  bool is_byte(TokenId id) const { return contains(id) && at(id).byte != 0; }
  // Whether there is a token.
  bool exists(TokenId id) const { return contains(id) && at(id).exists != 0; }

  // Appends the bytes of tokens up to the first that can't just be copied: a byte of byte fallback,
  // a special token if those are skipped, an id without a token. Returns the number of tokens.
  size_t append_texts(std::span<const TokenId> ids, DecodeOptions options, std::string& out) const;

 private:
  struct Entry {
    uint32_t begin = 0;
    uint32_t size : 29 = 0;
    uint32_t special : 1 = 0;
    uint32_t byte : 1 = 0;
    uint32_t exists : 1 = 0;
  };

  bool contains(TokenId id) const { return id >= 0 && id < id_limit(); }
  const Entry& at(TokenId id) const { return entries_[static_cast<size_t>(id)]; }
  void set(TokenId id, std::string_view text, const TokenDecoder& decoder);

  // Bytes copied at once: nearly all tokens are shorter, and a copy of constant size takes a few
  // instructions.
  static constexpr size_t kCopied = 16;

  std::string bytes_;           // of all tokens, concatenated, and kCopied more
  std::vector<Entry> entries_;  // by id
};

}  // namespace paceline
