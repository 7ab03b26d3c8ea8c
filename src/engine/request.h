// What the engine is asked for and what it answers: token ids in, token ids out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sampling/sampler.h"
#include "sampling/sampling_options.h"

namespace paceline {

using TokenId = int32_t;

struct GenerateRequest {
  std::vector<TokenId> prompt;
  std::string prompt_name = "prompt_ids";  // in messages
  int64_t max_tokens = 256;
  SamplingOptions sampling;
  std::vector<TokenId> eos_tokens;      // end the output, not part of it
  std::vector<TokenId> stop_token_ids;  // likewise, and reported as the reason
  std::vector<std::string> stop_strings;
  bool ignore_eos = false;
  bool want_logprobs = false;
  bool want_prompt_logprobs = false;
  std::stop_token cancelled;
};

enum class FinishReason : uint8_t { stop, length, cancelled };

std::string_view finish_reason_name(FinishReason reason);

struct Finish {
  FinishReason reason = FinishReason::stop;
  std::optional<TokenId> stop_token;   // a stop_token_ids hit
  std::optional<int32_t> stop_string;  // index into stop_strings
};

// One step of a generation: at most one token, and how it ended when it did.
struct TokenEvent {
  std::optional<TokenLogprob> token;  // logprob is 0 unless asked for
  std::vector<TokenLogprob> top_logprobs;
  // Bytes of the output's text, from its start, that may be shown: what may still become a stop
  // string is held back, and a stop string itself is never released.
  int64_t releasable_bytes = 0;
  std::optional<Finish> finish;
};

// The log-probability of a token given everything before it.
struct ScoredToken {
  TokenId id = 0;
  std::optional<float> logprob;  // nothing for the first token
  std::vector<TokenLogprob> top_logprobs;
};

// Throws Error invalid "FIELD[i]: ..." for an id outside [0, vocab_size).
void check_token_ids(std::span<const TokenId> ids, int64_t vocab_size, std::string_view field);

// Throws Error cancelled when the caller asked for it.
void throw_if_cancelled(const std::stop_token& cancelled);

struct GenerationStats {
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;  // drawn, an EOS included
  double prefill_seconds = 0;
  double decode_seconds = 0;
  double time_to_first_token_seconds = 0;
};

}  // namespace paceline
