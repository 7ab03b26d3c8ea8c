// BpeTokenizer: byte pair encoding, byte-level as in GPT-2, Llama 3, Qwen and DeepSeek, or of
// characters as in SentencePiece for Gemma, Llama 2 and Mistral; or the tokens of a Unigram or
// WordPiece model.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/tokenizer.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe_symbols.h"
#include "tokenizer/token_table.h"
#include "tokenizer/tokenizer_file.h"
#include "tokenizer/word_cache_pool.h"

namespace paceline {

// Immutable.
class BpeTokenizer {
 public:
  // `where` names the file in errors.
  BpeTokenizer(TokenizerFile file, std::string_view where);

  int64_t vocab_size() const { return table_.id_limit(); }
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const;
  Encoding encode_with_spans(std::string_view text, EncodeOptions options) const;
  PairEncoding encode_pair(std::string_view first, std::string_view second, EncodeOptions options,
                           std::optional<PairLimit> limit) const;
  std::string decode(std::span<const TokenId> ids, DecodeOptions options) const;
  std::string_view token_bytes(TokenId id) const { return table_.bytes(id); }
  std::string_view token_text(TokenId id) const;
  std::optional<TokenId> token_id(std::string_view token_text) const;
  bool is_special(TokenId id) const { return table_.is_special(id); }
  void check_id(TokenId id) const;

  const AddedTokens& added_tokens() const { return added_tokens_; }
  const TokenDecoder& decoder() const { return file_.decoder; }
  const TokenTable& table() const { return table_; }
  // The decoder's input for a token: an added token's pattern, else the vocabulary's text.
  std::string_view decoded_text(TokenId id) const;

 private:
  class Encoder;  // one call of encode

  TokenizerFile file_;
  AddedTokens added_tokens_;
  TokenTable table_;
  BpeSymbols symbols_;
  mutable WordCachePool caches_;  // of merged words; they change no result
};

}  // namespace paceline
