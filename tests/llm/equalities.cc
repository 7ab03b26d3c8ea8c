#include "tests/llm/equalities.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace paceline::testing {
namespace {

void expect_same_logprobs(const std::vector<Logprob>& found, const std::vector<Logprob>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].id, expected[i].id);
    EXPECT_EQ(found[i].logprob, expected[i].logprob) << "at " << i;
    ASSERT_EQ(found[i].top.size(), expected[i].top.size());
    for (size_t t = 0; t < found[i].top.size(); ++t) {
      EXPECT_EQ(found[i].top[t].id, expected[i].top[t].id);
      EXPECT_EQ(found[i].top[t].logprob, expected[i].top[t].logprob);
    }
  }
}

std::vector<int32_t> random_ids(uint64_t seed, int64_t count, int32_t vocab_size) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(uniform_draw(seed, static_cast<uint64_t>(i)) * vocab_size));
  }
  return ids;
}

// A cache so small that the requests preempt each other: a fraction of their total need.
size_t tight_cache_bytes(const LoadOptions& model) {
  LoadOptions one = model;
  one.max_num_seqs = 1;
  one.max_model_len = 160;
  return LLM::load(one).model_info().kv_cache_bytes * 3 / 2;
}

}  // namespace

const std::map<std::string, std::function<void(LoadOptions&)>>& executions() {
  static const std::map<std::string, std::function<void(LoadOptions&)>> all = {
      {"as_it_comes", [](LoadOptions&) {}},
      {"two_threads", [](LoadOptions& o) { o.num_threads = 2; }},
      {"chunks_of_1", [](LoadOptions& o) { o.max_chunk = 1; }},
      {"chunks_of_7", [](LoadOptions& o) { o.max_chunk = 7; }},
      {"chunks_of_64",
       [](LoadOptions& o) {
         o.max_chunk = 64;
         o.max_num_batched_tokens = 64;
       }},
      {"three_at_a_time", [](LoadOptions& o) { o.max_num_seqs = 3; }},
      {"nothing_cached", [](LoadOptions& o) { o.prefix_caching = false; }},
      {"small_blocks", [](LoadOptions& o) { o.block_size = 3; }},
      {"a_tight_cache",
       [](LoadOptions& o) {
         o.block_size = 2;
         o.max_model_len = 160;
         o.batch_timeout_ms = 10000;
         o.batch_size = 8;  // all of them
         o.kv_cache_memory_bytes = tight_cache_bytes(o);
       }},
  };
  return all;
}

std::vector<LLM::Request> mixed_requests(int32_t vocab_size, int64_t max_tokens) {
  const std::vector<int32_t> beginning = random_ids(1, 37, vocab_size);
  std::vector<LLM::Request> requests;
  for (uint64_t i = 0; i < 8; ++i) {
    std::vector<int32_t> prompt;
    if (i % 2 == 0) prompt = beginning;
    const auto own = random_ids(100 + i, static_cast<int64_t>(1 + 9 * i), vocab_size);
    prompt.insert(prompt.end(), own.begin(), own.end());
    GenerateOptions options{.max_tokens = max_tokens + static_cast<int64_t>(i), .seed = 40 + i};
    if (i % 3 == 0) options.temperature = 0.0f;
    if (i % 3 == 1) options.top_k = 40;
    if (i % 4 == 1) options.repetition_penalty = 1.3f;
    if (i % 4 == 2) options.frequency_penalty = 0.4f;
    if (i % 4 == 3) options.logit_bias = {{10, 2.5f}, {vocab_size - 3, -100.0f}};
    if (i % 5 != 0) options.logprobs = 3;
    options.prompt_logprobs = i % 3 == 2;
    if (i % 4 == 0) options.top_p = 0.9f;
    if (i == 5) options.stop_token_ids = random_ids(7, 20, vocab_size);
    requests.push_back({std::move(prompt), std::move(options)});
  }
  return requests;
}

void expect_same_completion(const Completion& found, const Completion& expected) {
  EXPECT_EQ(found.token_ids, expected.token_ids);
  EXPECT_EQ(found.text, expected.text);
  EXPECT_EQ(found.finish_reason, expected.finish_reason);
  EXPECT_EQ(found.stop_reason, expected.stop_reason);
  EXPECT_EQ(found.seed, expected.seed);
  EXPECT_EQ(found.usage.completion_tokens, expected.usage.completion_tokens);
  EXPECT_EQ(found.usage.prompt_tokens, expected.usage.prompt_tokens);
  expect_same_logprobs(found.logprobs, expected.logprobs);
  expect_same_logprobs(found.prompt_logprobs, expected.prompt_logprobs);
}

std::vector<Completion> alone(const LoadOptions& model, const std::vector<LLM::Request>& requests) {
  LoadOptions options = model;
  options.num_threads = 1;
  options.max_num_seqs = 1;
  options.prefix_caching = false;
  LLM llm = LLM::load(options);
  std::vector<Completion> completions;
  for (const LLM::Request& request : requests) {
    completions.push_back(llm.generate(request.prompt, request.options).completion());
  }
  return completions;
}

int64_t expect_same_together(const LoadOptions& model, const std::vector<LLM::Request>& requests,
                             const std::vector<Completion>& expected) {
  LLM llm = LLM::load(model);
  for (const char* const cache : {"cold", "warm"}) {
    SCOPED_TRACE(cache);
    const auto results = llm.batch_generate(requests);
    for (size_t i = 0; i < results.size(); ++i) {
      SCOPED_TRACE(i);
      if (const auto* const completion = std::get_if<Completion>(&results[i])) {
        expect_same_completion(*completion, expected[i]);
      } else {
        ADD_FAILURE() << std::get<ErrorInfo>(results[i]).message;
      }
    }
  }
  return llm.metrics().preemptions;
}

}  // namespace paceline::testing
