#include "text/describe.h"

#include "base/utf8.h"

namespace paceline {

std::string token_string(const TextModel& model, TokenId id) {
  if (model.tokenizer == nullptr || id >= model.tokenizer->vocab_size()) return {};
  return replace_invalid_utf8(model.tokenizer->token_bytes(id));
}

std::vector<TopLogprob> describe_top(const TextModel& model, const std::vector<TokenLogprob>& top) {
  std::vector<TopLogprob> described;
  for (const TokenLogprob& one : top) {
    described.push_back(
        {.id = one.id, .token = token_string(model, one.id), .logprob = one.logprob});
  }
  return described;
}

std::vector<Logprob> describe(const TextModel& model, const std::vector<ScoredToken>& tokens) {
  std::vector<Logprob> described;
  described.reserve(tokens.size());
  for (const ScoredToken& token : tokens) {
    described.push_back({.id = token.id,
                         .token = token_string(model, token.id),
                         .logprob = token.logprob,
                         .top = describe_top(model, token.top_logprobs)});
  }
  return described;
}

}  // namespace paceline
