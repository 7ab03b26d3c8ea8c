// The facade on a golden checkpoint without a tokenizer: token ids in and out.
#include "paceline/llm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/expect_error.h"
#include "tests/source_path.h"

namespace paceline {
namespace {

std::string golden(const std::string& name) { return source_path("tests/goldens/models/" + name); }

LoadOptions small(const std::string& name) {
  return {.model = golden(name), .max_num_seqs = 4, .num_threads = 2};
}

const std::vector<int32_t> kTokenPrompt = {57, 75, 187, 186, 44, 182, 183, 254, 16, 122};

GenerateOptions greedy_to_the_end(int64_t max_tokens) {
  return {.max_tokens = max_tokens, .temperature = 0.0f, .ignore_eos = true};
}

TEST(Llm, GeneratesTheSameTokensWhateverTheLoadingOptions) {
  LLM llm = LLM::load(small("gemma3_text_pattern2"));
  const Completion expected = llm.generate(kTokenPrompt, greedy_to_the_end(40)).completion();
  EXPECT_EQ(expected.token_ids.size(), 40u);
  EXPECT_EQ(expected.finish_reason, "length");
  EXPECT_FALSE(expected.text.has_value());
  EXPECT_EQ(expected.usage.prompt_tokens, 10);
  EXPECT_EQ(expected.usage.completion_tokens, 40);
  for (const int64_t budget : {1, 3, 512}) {
    for (const int64_t block_size : {1, 7, 16}) {
      LoadOptions options = small("gemma3_text_pattern2");
      options.max_num_batched_tokens = budget;
      options.block_size = block_size;
      options.num_threads = static_cast<int>(block_size % 3) + 1;
      LLM other = LLM::load(options);
      EXPECT_EQ(other.generate(kTokenPrompt, greedy_to_the_end(40)).completion().token_ids,
                expected.token_ids);
    }
  }
}

TEST(Llm, ASeedGivesTheSameDrawAndIsReturned) {
  LLM llm = LLM::load(small("llama_plain"));
  GenerateOptions options{.max_tokens = 30, .temperature = 1.0f, .ignore_eos = true};
  const Completion first = llm.generate(kTokenPrompt, options).completion();
  options.seed = first.seed;
  const Completion second = llm.generate(kTokenPrompt, options).completion();
  EXPECT_EQ(first.token_ids, second.token_ids);
  options.seed = first.seed + 1;
  EXPECT_NE(llm.generate(kTokenPrompt, options).completion().token_ids, first.token_ids);
}

TEST(Llm, LogprobsAreThoseOfScore) {
  LLM llm = LLM::load(small("qwen3_tied"));
  GenerateOptions options = greedy_to_the_end(6);
  options.logprobs = 3;
  options.prompt_logprobs = true;
  const Completion completion = llm.generate(kTokenPrompt, options).completion();
  std::vector<int32_t> all = kTokenPrompt;
  all.insert(all.end(), completion.token_ids.begin(), completion.token_ids.end());
  const std::vector<Logprob> scored = llm.score(all, {.num_top_logprobs = 3});
  ASSERT_EQ(completion.prompt_logprobs.size(), kTokenPrompt.size());
  ASSERT_EQ(completion.logprobs.size(), 6u);
  for (size_t i = 0; i < all.size(); ++i) {
    const Logprob& found = i < kTokenPrompt.size() ? completion.prompt_logprobs[i]
                                                   : completion.logprobs[i - kTokenPrompt.size()];
    EXPECT_EQ(found.id, scored[i].id);
    EXPECT_EQ(found.logprob, scored[i].logprob) << i;  // to the last bit
    ASSERT_EQ(found.top.size(), scored[i].top.size());
    for (size_t t = 0; t < found.top.size(); ++t) {
      EXPECT_EQ(found.top[t].logprob, scored[i].top[t].logprob);
    }
  }
}

TEST(Llm, ABatchKeepsItsOrderAndAnErrorIsItsOwnItemsOnly) {
  LLM llm = LLM::load(small("qwen2_tied"));
  const std::vector<LLM::Request> requests = {
      {.prompt = kTokenPrompt, .options = greedy_to_the_end(4)},
      {.prompt = std::vector<int32_t>{999}},
      {.prompt = std::vector<int32_t>{}},
      {.prompt = kTokenPrompt, .options = greedy_to_the_end(7)}};
  const auto results = llm.batch_generate(requests);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(std::get<Completion>(results[0]).token_ids.size(), 4u);
  EXPECT_EQ(std::get<ErrorInfo>(results[1]).code, ErrorCode::invalid);
  EXPECT_NE(std::get<ErrorInfo>(results[1]).message.find("prompt_ids[0]"), std::string::npos);
  EXPECT_NE(std::get<ErrorInfo>(results[2]).message.find("empty"), std::string::npos);
  EXPECT_EQ(std::get<Completion>(results[3]).token_ids.size(), 7u);
}

TEST(Llm, MaxKvSizeBoundsEveryLayerAndLiftsTheContext) {
  LoadOptions options = small("llama_plain");
  options.max_kv_size = 16;
  options.kv_cache_memory_bytes = 1 << 20;
  options.max_num_seqs = 1;
  LLM llm = LLM::load(options);
  // The model was made for 256 positions; the rotating window goes on past them.
  const Completion completion = llm.generate(kTokenPrompt, greedy_to_the_end(400)).completion();
  EXPECT_EQ(completion.token_ids.size(), 400u);
}

TEST(Llm, ContextLimitsAreErrorsThatNameTheOption) {
  LoadOptions options = small("llama_plain");
  options.max_model_len = 12;
  LLM llm = LLM::load(options);
  EXPECT_EQ(llm.generate(kTokenPrompt, greedy_to_the_end(100)).completion().token_ids.size(), 2u);
  expect_error(ErrorCode::invalid, {"--max-model-len"},
               [&] { llm.generate(std::vector<int32_t>(13, 1), greedy_to_the_end(1)); });
  options.max_model_len = 257;
  expect_error(ErrorCode::invalid, {"--max-model-len"}, [&] { LLM::load(options); });
  options.max_model_len = 256;
  options.kv_cache_memory_bytes = 4096;
  expect_error(ErrorCode::exhausted, {"--kv-cache-memory"}, [&] { LLM::load(options); });
}

TEST(Llm, TextNeedsATokenizerAndTheErrorSaysSo) {
  LLM llm = LLM::load(small("llama_plain"));
  expect_error(ErrorCode::not_found, {"tokenizer.json"}, [&] { llm.generate("hello"); });
  expect_error(ErrorCode::not_found, {"tokenizer.json"}, [&] { llm.tokenize("hello"); });
  GenerateOptions options = greedy_to_the_end(1);
  options.stop = {"x"};
  expect_error(ErrorCode::invalid, {"stop"}, [&] { llm.generate(kTokenPrompt, options); });
}

TEST(Llm, CloseFreesEverythingAndMayBeCalledTwice) {
  LLM llm = LLM::load(small("llama_plain"));
  EXPECT_GT(llm.memory_use().active_bytes, 0u);
  llm.close();
  llm.close();
  expect_error(ErrorCode::invalid, {"closed"}, [&] { llm.generate(kTokenPrompt); });
  expect_error(ErrorCode::invalid, {"closed"}, [&] { llm.memory_use(); });
}

TEST(Llm, MemoryControlsAndDescriptions) {
  LoadOptions options = small("gemma2_even");
  options.memory_limit_bytes = 1000;
  expect_error(ErrorCode::exhausted, {"limit"}, [&] { LLM::load(options); });
  options.memory_limit_bytes.reset();
  LLM llm = LLM::load(options);
  const ModelInfo model = llm.model_info();
  EXPECT_EQ(model.family, "gemma2");
  EXPECT_EQ(model.num_layers, 4);
  EXPECT_EQ(model.vocab_size, 256);
  EXPECT_EQ(model.dtype, "float32");
  EXPECT_EQ(model.kv_cache_dtype, "float32");
  EXPECT_GT(model.num_parameters, 0);
  EXPECT_GE(model.weight_bytes, static_cast<size_t>(model.num_parameters) * 4);
  LoadOptions codes = options;
  codes.kv_cache_dtype = DataType::int8;
  codes.max_model_len = options.max_model_len = 64;
  const ModelInfo smaller = LLM::load(codes).model_info();
  EXPECT_EQ(smaller.kv_cache_dtype, "int8");
  EXPECT_LT(smaller.kv_cache_bytes, LLM::load(options).model_info().kv_cache_bytes / 2);
  codes.kv_cache_dtype = static_cast<DataType>(77);
  expect_error(ErrorCode::invalid, {"--kv-cache-dtype", "?", "int8"}, [&] { LLM::load(codes); });
  options.dtype = DataType::int8;
  expect_error(ErrorCode::invalid, {"--dtype", "int8", "bfloat16"}, [&] { LLM::load(options); });
  EXPECT_FALSE(model.has_tokenizer);
  EXPECT_EQ(llm.device_info().num_threads, 2);
  llm.generate(kTokenPrompt, greedy_to_the_end(3)).completion();
  const Metrics metrics = llm.metrics();
  EXPECT_EQ(metrics.prompt_tokens, 10);
  EXPECT_EQ(metrics.completion_tokens, 3);
  EXPECT_GT(metrics.prefill_tokens_per_second, 0);
  EXPECT_GT(metrics.decode_tokens_per_second, 0);
  EXPECT_GT(metrics.peak_memory_bytes, model.weight_bytes);
}

TEST(Llm, AnAbandonedStreamGivesItsBlocksBack) {
  LoadOptions options = small("llama_plain");
  options.kv_cache_memory_bytes = 64 << 10;
  options.max_num_seqs = 1;
  LLM llm = LLM::load(options);
  for (int i = 0; i < 50; ++i) {
    GenerationStream stream = llm.generate(kTokenPrompt, greedy_to_the_end(20));
    (void)stream.begin();
  }
  EXPECT_EQ(llm.generate(kTokenPrompt, greedy_to_the_end(20)).completion().token_ids.size(), 20u);
}

TEST(Llm, ClassificationOverLabels) {
  LLM llm = LLM::load(small("qwen3_tied"));
  ClassifyOptions options;
  options.with_logits = true;
  options.sampling.temperature = 0.0f;
  const Classification found = llm.classify(kTokenPrompt, options);
  ASSERT_EQ(found.logits.size(), 256u);
  const auto best = std::max_element(found.logits.begin(), found.logits.end());
  EXPECT_EQ(found.token_id, static_cast<int32_t>(best - found.logits.begin()));
  EXPECT_TRUE(found.scores.empty());
}

}  // namespace
}  // namespace paceline
