// TokenNames maps tokens to their texts and bytes in answers, also those of log-probabilities.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "paceline/results.h"
#include "paceline/tokenizer.h"
#include "protocol/request_fields.h"
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

// Log-probabilities of results, each with the first `num_top` of its alternatives.

// Tokens of an answer's text.
std::vector<ReportedToken> report_output(std::span<const Logprob> tokens, int32_t num_top,
                                         const TokenNames& names, SpecialTokens specials);

// Tokens of a prompt that isn't part of the answer's text.
std::vector<ReportedToken> report_prompt(std::span<const Logprob> tokens, int32_t num_top,
                                         const TokenNames& names);

// Tokens of a prompt in front of the answer's text; `add_special_tokens` as it was encoded.
std::vector<ReportedToken> report_echo(std::span<const Logprob> tokens, int32_t num_top,
                                       const PromptText& prompt, bool add_special_tokens,
                                       const TokenNames& names);

}  // namespace paceline
