// The fields that several kinds of requests share, and the limits of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "protocol/request_reader.h"

namespace paceline {

// What no request may exceed (and n the engine's kMaxChoices); a server may ask for less.
constexpr size_t kMaxPrompts = 128;  // of a completion
constexpr size_t kMaxInputs = 2048;  // of a classification
constexpr size_t kMaxLabels = 1024;
constexpr int64_t kMaxTopLogprobs = 20;
constexpr size_t kMaxStops = 4;
constexpr size_t kMaxStopBytes = 256;
constexpr size_t kMaxStopTokenIds = 128;
constexpr size_t kMaxBiasEntries = 1024;
constexpr size_t kMaxMessages = 1024;
constexpr size_t kMaxTools = 128;
constexpr size_t kMaxToolBytes = 256 << 10;  // all of `tools`, as JSON
constexpr size_t kMaxSaltBytes = 1024;
constexpr int64_t kMaxOutputTokens = 2147483647;

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
  float frequency_penalty = 0;
  float presence_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;
  bool mlx_sampler_order = false;
  std::optional<uint64_t> seed;
};

struct StreamFields {
  bool stream = false;
  bool include_usage = false;
  bool has_options = false;  // stream_options was there
};

// How a text goes on, ends, and is reported.
struct GenerationFields {
  int32_t n = 1;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool ignore_eos = false;
  std::optional<int32_t> prompt_logprobs;  // alternatives beside each token of the prompt
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;  // tokens are written "token_id:N"
  StreamFields streaming;
};

// Text, or token ids taken as given.
using PromptText = std::variant<std::string, std::vector<int32_t>>;

struct PromptList {
  std::vector<PromptText> prompts;
  bool is_array = false;  // of prompts; then messages call them "prompt[0]", ...

  // What messages call one of them; `field` is the request's.
  std::string name(std::string_view field, size_t index) const;
};

// A string, an array of strings, of token ids, or of arrays of token ids.
PromptList read_prompts(const FieldValue& value, size_t max_prompts);

FieldTable<CommonFields> common_fields();
FieldTable<SamplingFields> sampling_fields();
FieldTable<GenerationFields> generation_fields();

// What the tables can't see: fields that need one another.
void check_stream_fields(const StreamFields& streaming);

}  // namespace paceline
