// The fields that several kinds of requests share, and the limits of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/request.h"
#include "paceline/options.h"
#include "protocol/prompt_list.h"
#include "protocol/request_reader.h"
#include "text/generation_options.h"

namespace paceline {

// What no request may exceed, beside the limits of generation options and kMaxChoices.
constexpr uint64_t kMaxLabels = 1024;
constexpr uint64_t kMaxSaltBytes = 1024;

// Of alternatives beside a token, and of max_tokens.
inline constexpr FieldType kNumTopLogprobs = integer_type(generation_option("logprobs").range);
inline constexpr FieldType kOutputTokens = integer_type(generation_option("max_tokens").range);

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

struct StreamFields {
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;  // in every chunk
  int64_t interval = 1;           // tokens of a chunk, but for the first and the last one
  bool has_options = false;       // stream_options was there
};

// How often a text is continued, and what is reported of it.
struct GenerationFields {
  int32_t n = 1;
  std::optional<int32_t> prompt_logprobs;  // alternatives beside each token of the prompt
  bool return_token_ids = false;
  bool timings = false;                     // each choice says what it took
  bool return_tokens_as_token_ids = false;  // tokens are written "token_id:N"
  bool has_negative_seed = false;           // the answer reports it as it was given
  std::optional<int64_t> penalised_tokens;  // llama.cpp's repeat_last_n; -1: all
  StreamFields streaming;
};

// Alternatives reported beside each token of the answer, of a request that asked for `num_top`.
std::optional<int32_t> num_alternatives(const GenerateOptions& options,
                                        std::optional<int32_t> num_top);
SpecialTokens specials_of(const GenerateOptions& options);
// Whether the body has a seed below 0, whose bits options.seed has.
bool has_negative_seed(const Json& body);

// Throws RequestError for ids whose log-probabilities nobody is told.
void check_logprob_fields(const GenerateOptions& options, bool has_logprobs);

FieldTable<CommonFields> common_fields();
FieldTable<GenerationFields> generation_fields();
// The generation options: how a token is drawn, and those that only requests for text have.
FieldTable<GenerateOptions> sampling_fields();
FieldTable<GenerateOptions> text_fields();

// What the tables can't see: fields that need one another.
void check_penalty_fields(const GenerationFields& fields, const GenerateOptions& options);
void check_stream_fields(const StreamFields& streaming);

}  // namespace paceline
