// BpeTokenizer: byte-level BPE, as GPT-2, Llama 3, Qwen and DeepSeek have it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/token_table.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_file.h"

namespace paceline {

class BpeTokenizer final : public Tokenizer {
 public:
  // Tokens that `config` names and that don't exist count as not named.
  BpeTokenizer(TokenizerFile file, const TokenizerConfig& config);

  int64_t vocab_size() const override { return table_.id_limit(); }
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const override;
  std::string decode(std::span<const TokenId> ids, DecodeOptions options) const override;
  std::string_view token_bytes(TokenId id) const override { return table_.bytes(id); }
  std::string_view token_text(TokenId id) const override;
  std::optional<TokenId> token_id(std::string_view token_text) const override;
  bool is_special(TokenId id) const override { return table_.is_special(id); }
  std::optional<TokenId> bos_token() const override { return bos_; }
  std::optional<TokenId> eos_token() const override { return eos_; }

 private:
  class Encoding;  // one call of encode

  TokenizerFile file_;
  AddedTokens added_tokens_;
  TokenTable table_;
  std::array<TokenId, 256>
      byte_tokens_;  // by byte; -1: the vocabulary has none, the byte is left out
  std::optional<TokenId> bos_;
  std::optional<TokenId> eos_;
};

}  // namespace paceline
