// The fields that several kinds of requests share, and the limits of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/request.h"
#include "protocol/prompt_list.h"
#include "protocol/request_reader.h"

namespace paceline {

// What no request may exceed (and n the engine's kMaxChoices).
constexpr uint64_t kMaxLabels = 1024;
constexpr uint64_t kMaxTopLogprobs = 20;
constexpr uint64_t kMaxStops = 4;
constexpr uint64_t kMaxStopBytes = 256;
constexpr uint64_t kMaxStopTokenIds = 128;
constexpr uint64_t kMaxBiasEntries = 1024;
constexpr uint64_t kMaxBadWords = 128;
constexpr uint64_t kMaxBadWordBytes = 256;
constexpr uint64_t kMaxLogprobTokenIds = 128;
constexpr uint64_t kMaxSaltBytes = 1024;
constexpr uint64_t kMaxOutputTokens = 2147483647;

// Of alternatives beside a token, and of max_tokens.
inline constexpr FieldType kNumTopLogprobs = integer_type(0, kMaxTopLogprobs);
inline constexpr FieldType kOutputTokens = integer_type(0, kMaxOutputTokens);

// What max_tokens is when the request doesn't say; the context may end it sooner.
constexpr int64_t kDefaultCompletionTokens = 16;
constexpr int64_t kDefaultChatTokens = 4096;

// Of every request.
struct CommonFields {
  std::optional<std::string> model;
  // Neither changes an answer: when it is computed, and with whom it may share a cache.
  int32_t priority = 0;
  std::string cache_salt;
};

// How a token is chosen; unset ones take the model's own defaults.
struct SamplingFields {
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int32_t> top_k;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
  std::optional<int64_t> penalised_tokens;  // llama.cpp's repeat_last_n; -1: all
  float frequency_penalty = 0;
  float presence_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;
  bool mlx_sampler_order = false;
  std::optional<uint64_t> seed;
  bool has_negative_seed = false;  // and is told so
};

struct StreamFields {
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;  // in every chunk
  int64_t interval = 1;           // tokens of a chunk, but for the first and the last one
  bool has_options = false;       // stream_options was there
};

// How a text goes on, ends, and is reported.
struct GenerationFields {
  int32_t n = 1;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool includes_stop = false;  // the stop string is part of the text
  bool ignore_eos = false;
  bool skip_special_tokens = true;  // false: the text has them as they are spelled
  std::vector<std::string> bad_words;
  std::vector<int32_t> allowed_token_ids;  // none: all
  std::vector<int32_t> logprob_token_ids;  // told instead of the likeliest alternatives
  int64_t min_tokens = 0;
  std::optional<int64_t> truncate_prompt_tokens;
  std::optional<int32_t> prompt_logprobs;  // alternatives beside each token of the prompt
  bool return_token_ids = false;
  bool timings = false;                     // each choice says what it took
  bool return_tokens_as_token_ids = false;  // tokens are written "token_id:N"
  StreamFields streaming;

  // Alternatives told beside each token of the answer, of a request that asked for `num_top`.
  std::optional<int32_t> num_alternatives(std::optional<int32_t> num_top) const;
  SpecialTokens specials() const {
    return skip_special_tokens ? SpecialTokens::hidden : SpecialTokens::shown;
  }
};

// Throws RequestError for ids whose log-probabilities nobody is told.
void check_logprob_fields(const GenerationFields& fields, bool has_logprobs);

FieldTable<CommonFields> common_fields();
FieldTable<SamplingFields> sampling_fields();
FieldTable<GenerationFields> generation_fields();

// What the tables can't see: fields that need one another.
void check_penalty_fields(const SamplingFields& sampling);
void check_stream_fields(const StreamFields& streaming);

}  // namespace paceline
