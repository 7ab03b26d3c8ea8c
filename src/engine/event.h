// The engine's output: an event for each token, and one for an end without a token.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sample.h"
#include "base/time_source.h"
#include "engine/request.h"
#include "paceline/results.h"

namespace paceline {

inline double seconds_of(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

inline int64_t microseconds_of(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

enum class FinishReason : uint8_t { stop, length, cancelled, error };
inline constexpr std::string_view kFinishReasons[] = {"stop", "length", "cancelled", "error"};

constexpr std::string_view finish_reason_name(FinishReason reason) {
  return kFinishReasons[static_cast<size_t>(reason)];
}

struct Finish {
  FinishReason reason = FinishReason::stop;
  std::optional<TokenId> stop_token = {};   // a stop_token_ids hit
  std::optional<int32_t> stop_string = {};  // index into stop_strings
};

struct GenerationStats {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, found in the prefix cache
  int64_t output_tokens = 0;  // drawn, an EOS included
  int64_t preemptions = 0;
  int64_t drafted_tokens = 0;   // proposed by speculation and checked
  int64_t accepted_tokens = 0;  // of these, drawn
  double logprob = 0;           // of all that was drawn, summed; 0 unless asked for
  double queue_seconds = 0;     // from submission to the first step that computed some of it
  double prefill_seconds = 0;   // from there to the first token, or the end of the prompt
  double decode_seconds = 0;    // from the first token to the last
  double time_to_first_token_seconds = 0;  // from submission
};

// The log-probability of a token given everything before it.
struct ScoredToken {
  TokenId id = 0;
  std::optional<float> logprob;  // nothing for the first token
  std::vector<TokenLogprob> top_logprobs;
};

// The results that a request asked for about its prompt.
struct PromptOutputs {
  std::vector<ScoredToken> scored;  // positions [score_from, prompt length)
  std::vector<float> column_logits;
  std::vector<float> row;
  std::vector<float> pooled;  // what the model makes of the pooled states
};

struct Ending {
  Finish finish;
  std::optional<ErrorInfo> error;  // with FinishReason::error
  GenerationStats stats;
};

struct TokenEvent {
  RequestId request = 0;
  int64_t tag = 0;  // the submitter's
  int32_t choice = 0;
  std::optional<TokenLogprob> token;  // logprob is 0 unless asked for
  std::vector<TokenLogprob> top_logprobs;
  bool was_drafted = false;  // the token
  // Bytes of the output's text, from its start, that may be shown: what may still become a stop
  // string is held back, and a stop string itself is never released.
  int64_t releasable_bytes = 0;
  int64_t cached_tokens = 0;              // of the prompt, found in the prefix cache
  std::unique_ptr<PromptOutputs> prompt;  // of choice 0, with its first event
  std::unique_ptr<Ending> ending;         // with the last
};

}  // namespace paceline
