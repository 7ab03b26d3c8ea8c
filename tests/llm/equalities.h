// One set of requests with every feature on, and their completions compared to the last bit.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "paceline/llm.h"

namespace paceline::testing {

// Prompts of different lengths, some with a common beginning; greedy and seeded, penalties, bias,
// truncation, log-probabilities of output and prompt, stop tokens. `vocab_size` bounds the ids.
std::vector<LLM::Request> mixed_requests(int32_t vocab_size, int64_t max_tokens);

// Ways to run these requests; none may change a bit.
const std::map<std::string, std::function<void(LoadOptions&)>>& executions();

// Fails the test, naming request and field, where they differ.
void expect_same_completion(const Completion& found, const Completion& expected);

// Runs each request alone, on a model loaded for one sequence, one thread, nothing cached.
std::vector<Completion> alone(const LoadOptions& model, const std::vector<LLM::Request>& requests);

// Runs the requests in one batch, then again with a warm prefix cache. Fails the test where a
// result differs from the expected one. Returns the number of preemptions.
int64_t expect_same_together(const LoadOptions& model, const std::vector<LLM::Request>& requests,
                             const std::vector<Completion>& expected);

}  // namespace paceline::testing
