// CompletionRequest is the body of POST /v1/completions.
#pragma once

#include <cstdint>
#include <optional>

#include "protocol/request_fields.h"
#include "text/infill_prompt.h"

namespace paceline {

struct CompletionRequest {
  CommonFields common;
  GenerateOptions options = {.max_tokens = kDefaultCompletionTokens};
  GenerationFields generation;

  // The prompts; or mixed ones, or a gap to fill, until they are encoded.
  PromptList prompt;
  std::vector<MixedPrompt> mixed_prompts;
  std::optional<InfillPrompt> infill;
  std::string suffix;               // after the gap that each prompt's answer fills; empty: none
  std::optional<int32_t> logprobs;  // alternatives beside each token, 0 to 20
  bool echo = false;                // the prompt comes before the text, in log-probabilities too
  int32_t best_of = 0;              // candidates; the answer has the likeliest n. 0: n
  bool as_probabilities = false;    // log-probabilities were asked for by llama.cpp's name

  // Alternatives reported beside each token; nothing: no log-probabilities are reported.
  std::optional<int32_t> num_alternatives() const {
    return paceline::num_alternatives(options, logprobs);
  }
  int32_t num_candidates() const { return best_of > generation.n ? best_of : generation.n; }
};

// Throws RequestError naming the first field that is wrong, unknown or not supported.
CompletionRequest parse_completion_request(const Json& body, const RequestTerms& terms = {});

FieldList completion_request_fields();

}  // namespace paceline
