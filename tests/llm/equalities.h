// One set of requests with every feature on, and their completions compared to the last bit.
#pragma once

#include <string>
#include <vector>

#include "paceline/llm.h"

namespace paceline::testing {

// Prompts of different lengths, some with a common beginning; greedy and seeded, penalties, bias,
// truncation, log-probabilities of output and prompt, stop tokens. `vocab_size` bounds the ids.
std::vector<LLM::Request> mixed_requests(int32_t vocab_size, int64_t max_tokens);

// Fails the test, naming request and field, where they differ.
void expect_same_completion(const Completion& found, const Completion& expected);

// Each request by itself, on a model loaded for one sequence, one thread, nothing cached.
std::vector<Completion> alone(const LoadOptions& model, const std::vector<LLM::Request>& requests);

}  // namespace paceline::testing
