#include "engine/request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "engine/context_error.h"

namespace paceline {
namespace {

// A request for output needs room for one token of it; more of it is cut to the room there is.
void check_length(const GenerateRequest& request, int64_t capacity, std::string_view limit) {
  const auto length = static_cast<int64_t>(request.prompt.size());
  if (length + (request.max_tokens > 0 ? 1 : 0) <= capacity) return;
  throw context_error(ErrorCode::invalid, {.field = request.prompt_name,
                                           .capacity = capacity,
                                           .prompt_tokens = length,
                                           .output_tokens = request.max_tokens,
                                           .limit = limit});
}

void check_prompt(const GenerateRequest& request, const EngineLimits& limits, int64_t vocab_size) {
  const std::string& field = request.prompt_name;
  if (request.prompt.empty()) {
    throw invalid_field(field, "empty, expected at least one token");
  }
  check_token_ids(request.prompt, vocab_size, field);
  check_length(request, limits.max_model_len, "--max-model-len");
  if (limits.max_tokens_per_sequence > 0) {
    check_length(request, limits.max_tokens_per_sequence, "--max-tokens-per-sequence");
  }
}

// Pooled states are all that such a request asks for.
void check_pooling(const GenerateRequest& request) {
  const bool asks_more = request.max_tokens > 0 || request.score_from || request.want_row ||
                         !request.columns.empty() || request.prefix.hold;
  if (request.pooling && asks_more) {
    throw Error(ErrorCode::invalid, "pooling: the request asks for other results too");
  }
  const auto length = static_cast<int64_t>(request.prompt.size());
  if (request.pooling && length > 0 && request.pool_from >= length) {
    throw invalid_field(
        request.prompt_name,
        fmt::format("{} tokens, and the first {} aren't pooled: expected a text after "
                    "the model's prompt",
                    length, request.pool_from));
  }
}

// What models can't do that make vectors, or labels, of texts.
void check_task(const GenerateRequest& request, const EngineLimits& limits) {
  PL_CHECK(!request.second_text || limits.tells_types, "the model knows one type of tokens");
  if (limits.classifies && !request.pooling) {
    throw Error(ErrorCode::unsupported,
                "the model classifies whole texts (its head has labels): it neither generates nor "
                "scores tokens");
  }
  if (limits.bidirectional && !request.pooling) {
    throw Error(ErrorCode::unsupported,
                "the model attends in both directions: it makes embeddings, and neither generates "
                "nor scores tokens");
  }
  if (!limits.has_head && !request.pooling) {
    throw Error(ErrorCode::unsupported,
                "the model's files have no lm_head.weight: it makes embeddings, and neither "
                "generates nor scores tokens; if its embedding is the head, set "
                "tie_word_embeddings to true in its config.json (beside text_config, where there "
                "is one)");
  }
  if (!limits.bidirectional) return;
  // A text is computed whole where attention goes in both directions.
  check_length(request, limits.max_batched_tokens,
               "--max-num-batched-tokens, the tokens of a step");
}

}  // namespace

void check_token_ids(std::span<const TokenId> ids, int64_t vocab_size, std::string_view field) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      const std::string place = fmt::format("{}[{}]", field, i);
      throw invalid_field(place, fmt::format("the token id {} is outside the vocabulary (0..{})",
                                             ids[i], vocab_size - 1));
    }
  }
}

void check_request(GenerateRequest& request, const EngineLimits& limits, int64_t vocab_size) {
  if (request.max_tokens < 0) {
    throw invalid_field("max_tokens", fmt::format("{}, expected 0 or more", request.max_tokens));
  }
  if (request.min_tokens < 0 || request.min_tokens > request.max_tokens) {
    throw invalid_field("min_tokens", fmt::format("{}, expected 0 to max_tokens ({})",
                                                  request.min_tokens, request.max_tokens));
  }
  if (request.constraint != nullptr && request.max_tokens == 0) {
    throw invalid_field("max_tokens", "0, so a constraint of the output has nothing to constrain");
  }
  if (request.adapter != nullptr && limits.max_adapters == 0) {
    throw Error(ErrorCode::invalid,
                "adapter: the engine was loaded without adapters; load it with --enable-lora");
  }
  check_pooling(request);
  check_prompt(request, limits, vocab_size);
  check_task(request, limits);
  check_sampling_options(request.sampling, vocab_size);
  check_token_ids(request.allowed_token_ids, vocab_size, "allowed_token_ids");
  for (const auto& sequence : request.banned_sequences) {
    if (sequence.empty()) throw Error(ErrorCode::invalid, "banned: an empty sequence of tokens");
  }
  check_token_ids(request.not_first, vocab_size, "not_first");
  check_token_ids(request.stop_token_ids, vocab_size, "stop_token_ids");
  check_token_ids(request.columns, vocab_size, "labels");
  if (request.n < 1 || request.n > kMaxChoices) {
    throw invalid_field("n", fmt::format("{}, expected 1 to {}", request.n, kMaxChoices));
  }
  if (request.n > 1 && request.max_tokens == 0) {
    throw invalid_field("n", fmt::format("{} choices of nothing, max_tokens is 0", request.n));
  }
  for (size_t i = 0; i < request.stop_strings.size(); ++i) {
    if (request.stop_strings[i].empty()) {
      const std::string place = fmt::format("stop[{}]", i);
      throw invalid_field(place, "empty, expected some text");
    }
  }
  int64_t room = limits.max_model_len;
  if (limits.max_tokens_per_sequence > 0) room = std::min(room, limits.max_tokens_per_sequence);
  request.max_tokens =
      std::min(request.max_tokens, room - static_cast<int64_t>(request.prompt.size()));
}

}  // namespace paceline
