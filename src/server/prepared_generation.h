// PreparedGeneration is a call that generates, checked and tokenised.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "protocol/dialect.h"
#include "server/request_rules.h"
#include "text/completion_builder.h"
#include "text/text_model.h"

namespace paceline {

// One prompt.
struct PreparedPart {
  GenerateRequest request;
  std::vector<CompletionBuilder> choices;  // n of them, or best_of
};

struct PreparedGeneration {
  GenerationRequest request;
  std::unique_ptr<ChoiceWriter> writer;
  std::vector<PreparedPart> parts;
  int64_t prompt_logprob_bytes = 0;  // about, of the log-probabilities of prompts in the response
};

// Any thread. Throws RequestError, and Error naming the field, for a request that can never run.
PreparedGeneration prepare_generation(const TextModel& model, GenerationCall call,
                                      const RequestRules& rules);

// The prompt of a conversation, in tokens. Throws as prepare_generation does.
int64_t count_prompt_tokens(const TextModel& model, const ChatRequest& request);

}  // namespace paceline
