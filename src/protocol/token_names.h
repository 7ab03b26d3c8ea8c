// TokenNames maps tokens to their texts and bytes in answers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "paceline/tokenizer.h"
#include "protocol/response.h"

namespace paceline {

class TokenNames {
 public:
  // nullptr: the model has no tokenizer. It must outlive this.
  explicit TokenNames(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  NamedToken named(int32_t id) const;
  // The bytes that a token adds to an answer's text: none for a hidden special token.
  size_t bytes_in_response(int32_t id, SpecialTokens specials) const;
  // The text of a prompt given as ids; empty without a tokenizer. Throws Error invalid for an id
  // that the tokenizer doesn't have.
  std::string decode(std::span<const int32_t> ids) const;
  // The same, where ids that the tokenizer doesn't have stand for no text.
  std::string decode_known(std::vector<int32_t> ids) const;
  // The bytes of the prompt's text that belong to each token: none for added special tokens.
  std::vector<size_t> bytes_in_prompt(std::string_view text, bool add_special_tokens) const;

 private:
  bool has_token(int32_t id) const {
    return tokenizer_ != nullptr && id < tokenizer_->vocab_size();
  }

  const Tokenizer* tokenizer_;
};

}  // namespace paceline
