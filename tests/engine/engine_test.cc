#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "engine/generation.h"
#include "tests/engine/scripted_runner.h"
#include "tests/expect_error.h"

namespace paceline::testing {
namespace {

constexpr int64_t kVocab = 32;
constexpr TokenId kEos = 31;

// Token t is followed by t + 1, with certainty; token i < 26 is the letter 'a' + i.
void count_up(int32_t token, int32_t /*position*/, std::span<float> logits) {
  logits[static_cast<size_t>((token + 1) % kVocab)] = 20.0f;
}

const TokenBytes& letters() {
  static const std::string text = "abcdefghijklmnopqrstuvwxyz";
  static const TokenBytes bytes = [] {
    TokenBytes all(kVocab);
    for (size_t i = 0; i < text.size(); ++i) all[i] = std::string_view(text).substr(i, 1);
    return all;
  }();
  return bytes;
}

class EngineTest : public ::testing::Test {
 protected:
  explicit EngineTest(Script script = count_up) : runner_(kVocab, std::move(script)) {}

  Engine& engine(int64_t num_blocks = 64,
                 EngineLimits limits = {.max_model_len = 64, .max_batched_tokens = 4}) {
    const std::vector<CacheGroup> groups = {{.window = 0, .num_blocks = num_blocks}};
    cache_ = std::make_unique<KvCache>(2, groups);
    engine_ = std::make_unique<Engine>(runner_, *backend_, memory_, *cache_, limits, letters());
    return *engine_;
  }

  static GenerateRequest greedy(std::vector<TokenId> prompt, int64_t max_tokens) {
    GenerateRequest request{.prompt = std::move(prompt), .max_tokens = max_tokens};
    request.sampling.temperature = 0;
    request.eos_tokens = {kEos};
    return request;
  }

  struct Run {
    std::vector<TokenId> tokens;
    std::vector<int64_t> releasable;
    Finish finish;
  };
  static Run run_to_end(Generation& generation) {
    Run run;
    while (!generation.finished()) {
      const TokenEvent event = generation.next();
      if (event.token) run.tokens.push_back(event.token->id);
      run.releasable.push_back(event.releasable_bytes);
      if (event.finish) run.finish = *event.finish;
    }
    return run;
  }

  int64_t free_blocks() const { return cache_->pool(0).num_free(); }

  Memory memory_;
  std::unique_ptr<Backend> backend_ = make_reference_backend();
  ScriptedRunner runner_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, length_ends_after_max_tokens_and_frees_every_block) {
  const auto generation = engine().start(greedy({1, 2, 3}, 5));
  const Run run = run_to_end(*generation);
  EXPECT_EQ(run.tokens, (std::vector<TokenId>{4, 5, 6, 7, 8}));
  EXPECT_EQ(run.finish.reason, FinishReason::length);
  EXPECT_EQ(generation->stats().output_tokens, 5);
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(EngineTest, eos_ends_and_is_left_out) {
  const auto generation = engine().start(greedy({28}, 10));
  const Run run = run_to_end(*generation);
  EXPECT_EQ(run.tokens, (std::vector<TokenId>{29, 30}));
  EXPECT_EQ(run.finish.reason, FinishReason::stop);
  EXPECT_FALSE(run.finish.stop_token.has_value());
  EXPECT_EQ(generation->stats().output_tokens, 3);
}

TEST_F(EngineTest, ignore_eos_goes_on) {
  GenerateRequest request = greedy({29}, 4);
  request.ignore_eos = true;
  const auto generation = engine().start(std::move(request));
  EXPECT_EQ(run_to_end(*generation).tokens, (std::vector<TokenId>{30, 31, 0, 1}));
}

TEST_F(EngineTest, a_stop_token_ends_and_is_the_reason) {
  GenerateRequest request = greedy({3}, 10);
  request.stop_token_ids = {6};
  const auto generation = engine().start(std::move(request));
  const Run run = run_to_end(*generation);
  EXPECT_EQ(run.tokens, (std::vector<TokenId>{4, 5}));
  EXPECT_EQ(run.finish.stop_token, 6);
}

TEST_F(EngineTest, a_stop_string_across_tokens_is_held_back_and_never_released) {
  GenerateRequest request = greedy({0}, 20);
  request.stop_strings = {"xyz", "efg"};
  const auto generation = engine().start(std::move(request));
  const Run run = run_to_end(*generation);
  EXPECT_EQ(run.tokens, (std::vector<TokenId>{1, 2, 3, 4, 5, 6}));  // b c d e f g
  EXPECT_EQ(run.releasable, (std::vector<int64_t>{1, 2, 3, 3, 3, 3}));
  EXPECT_EQ(run.finish.reason, FinishReason::stop);
  EXPECT_EQ(run.finish.stop_string, 1);
}

TEST_F(EngineTest, what_only_began_a_stop_string_is_released_at_the_end) {
  GenerateRequest request = greedy({0}, 5);
  request.stop_strings = {"efz"};
  const auto generation = engine().start(std::move(request));
  EXPECT_EQ(run_to_end(*generation).releasable, (std::vector<int64_t>{1, 2, 3, 3, 5}));
}

TEST_F(EngineTest, cancellation_takes_effect_within_one_step) {
  std::stop_source source;
  GenerateRequest request = greedy({0}, 20);
  request.cancelled = source.get_token();
  const auto generation = engine().start(std::move(request));
  generation->next();
  generation->next();
  const int64_t runs = runner_.num_runs;
  source.request_stop();
  const TokenEvent event = generation->next();
  EXPECT_FALSE(event.token.has_value());
  EXPECT_EQ(event.finish->reason, FinishReason::cancelled);
  EXPECT_LE(runner_.num_runs, runs + 1);
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(EngineTest, long_prompts_are_computed_in_chunks_of_the_token_budget) {
  const auto generation = engine().start(greedy(std::vector<TokenId>(11, 5), 1));
  run_to_end(*generation);
  EXPECT_EQ(runner_.num_runs, 3);  // 4 + 4 + 3
  EXPECT_EQ(runner_.num_rows, 11);
}

TEST_F(EngineTest, output_stops_at_the_end_of_the_context) {
  Engine& small = engine(64, {.max_model_len = 8, .max_batched_tokens = 4});
  const auto generation = small.start(greedy({1, 2, 3}, 100));
  const Run run = run_to_end(*generation);
  EXPECT_EQ(run.tokens.size(), 5u);
  EXPECT_EQ(run.finish.reason, FinishReason::length);
}

TEST_F(EngineTest, bad_requests_name_the_field_at_fault) {
  Engine& small = engine(64, {.max_model_len = 8, .max_batched_tokens = 4});
  expect_error(ErrorCode::invalid, {"prompt_ids: empty"}, [&] { small.start(greedy({}, 1)); });
  expect_error(ErrorCode::invalid,
               {"prompt_ids[1]: the token id 32 is outside the vocabulary (0..31)"}, [&] {
                 small.start(greedy({1, 32}, 1));
               });
  expect_error(ErrorCode::invalid, {"prompt_ids[0]"}, [&] { small.start(greedy({-1}, 1)); });
  expect_error(ErrorCode::invalid, {"--max-model-len"},
               [&] { small.start(greedy(std::vector<TokenId>(9, 1), 1)); });
  expect_error(ErrorCode::invalid, {"no room"},
               [&] { small.start(greedy(std::vector<TokenId>(8, 1), 1)); });
  expect_error(ErrorCode::invalid, {"max_tokens"}, [&] { small.start(greedy({1}, -1)); });
  expect_error(ErrorCode::invalid, {"stop[0]"}, [&] {
    GenerateRequest request = greedy({1}, 1);
    request.stop_strings = {""};
    small.start(std::move(request));
  });
  expect_error(ErrorCode::invalid, {"ids[1]: the token id 32"}, [&] {
    small.score(std::vector<TokenId>{1, 32}, 0, {}, "ids");
  });
  expect_error(ErrorCode::invalid, {"text: empty"},
               [&] { small.classify({.prompt = {}, .prompt_name = "text"}, {}); });
  expect_error(ErrorCode::invalid, {"labels[1][0]: the token id 32"}, [&] {
    small.classify({.prompt = {1}, .labels = {{2}, {32}}}, {});
  });
  expect_error(ErrorCode::invalid, {"stop_token_ids[0]"}, [&] {
    GenerateRequest request = greedy({1}, 1);
    request.stop_token_ids = {99};
    small.start(std::move(request));
  });
}

TEST_F(EngineTest, a_full_cache_fails_the_request_and_leaves_the_cache_whole) {
  Engine& small = engine(3);
  expect_error(ErrorCode::exhausted, {"cache"}, [&] {
    const auto generation = small.start(greedy({1, 2, 3, 4, 5}, 20));
    run_to_end(*generation);
  });
  EXPECT_EQ(free_blocks(), 3);
  const auto next = small.start(greedy({1}, 2));
  EXPECT_EQ(run_to_end(*next).tokens, (std::vector<TokenId>{2, 3}));
}

TEST_F(EngineTest, prompt_logprobs_are_those_of_score) {
  Engine& all = engine();
  const std::vector<TokenId> ids = {1, 2, 9, 10, 11, 3, 4, 5, 6};
  GenerateRequest request = greedy(ids, 1);
  request.want_prompt_logprobs = true;
  request.sampling.num_top_logprobs = 2;
  const auto generation = all.start(std::move(request));
  const Run run = run_to_end(*generation);
  EXPECT_EQ(run.tokens, (std::vector<TokenId>{7}));
  const auto scored = all.score(ids, 2, {});
  const auto& prompt = generation->prompt_logprobs();
  ASSERT_EQ(prompt.size(), ids.size());
  ASSERT_EQ(scored.size(), ids.size());
  EXPECT_FALSE(scored[0].logprob.has_value());
  for (size_t i = 1; i < ids.size(); ++i) {
    EXPECT_EQ(prompt[i].id, ids[i]);
    EXPECT_EQ(prompt[i].logprob, scored[i].logprob);
    // The script gives 20 to the successor and 0 to the other 31.
    const double total = std::log(std::exp(20.0) + 31.0);
    const double expected = (ids[i] == ids[i - 1] + 1 ? 20.0 : 0.0) - total;
    EXPECT_NEAR(*scored[i].logprob, expected, 1e-4);
    EXPECT_EQ(scored[i].top_logprobs[0].id, ids[i - 1] + 1);
  }
}

TEST_F(EngineTest, classify_by_one_token_labels_takes_their_logits) {
  const auto found =
      engine().classify({.prompt = {4}, .labels = {{5}, {7}}, .want_token = false}, {});
  EXPECT_FALSE(found.token.has_value());
  EXPECT_TRUE(found.labels_are_logits);
  EXPECT_EQ(found.label_logprobs, (std::vector<float>{20.0f, 0.0f}));
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(EngineTest, classify_by_longer_labels_sums_their_logprobs) {
  Engine& all = engine();
  const std::vector<std::vector<TokenId>> labels = {{5, 6, 7}, {5}, {9, 3}};
  const auto found = all.classify({.prompt = {3, 4}, .labels = labels, .want_token = true}, {});
  EXPECT_FALSE(found.labels_are_logits);
  for (size_t i = 0; i < labels.size(); ++i) {
    std::vector<TokenId> whole = {3, 4};
    whole.insert(whole.end(), labels[i].begin(), labels[i].end());
    const auto scored = all.score(whole, 0, {});
    double expected = 0;
    for (size_t t = 2; t < whole.size(); ++t) expected += static_cast<double>(*scored[t].logprob);
    EXPECT_NEAR(found.label_logprobs[i], expected, 1e-5);
  }
  EXPECT_EQ(free_blocks(), 64);
}

// A row with a NaN at position 6, and one with nothing but -inf at position 9.
void sometimes_broken(int32_t token, int32_t position, std::span<float> logits) {
  count_up(token, position, logits);
  if (position == 6) logits[3] = std::numeric_limits<float>::quiet_NaN();
  if (position == 9) {
    for (float& logit : logits) logit = -std::numeric_limits<float>::infinity();
  }
}

class BrokenRows : public EngineTest {
 protected:
  BrokenRows() : EngineTest(sometimes_broken) {}
};

TEST_F(BrokenRows, nan_and_nothing_to_draw_fail_that_request_alone) {
  Engine& all = engine();
  for (const float temperature : {0.0f, 1.0f}) {
    for (const size_t prompt_length : {7, 10}) {
      GenerateRequest request = greedy(std::vector<TokenId>(prompt_length, 1), 3);
      request.sampling.temperature = temperature;
      const auto generation = all.start(std::move(request));
      expect_error(ErrorCode::numerical, {"position"}, [&] { generation->next(); });
      EXPECT_TRUE(generation->finished());
    }
  }
  EXPECT_EQ(free_blocks(), 64);
  const auto healthy = all.start(greedy({1}, 2));
  EXPECT_EQ(run_to_end(*healthy).tokens, (std::vector<TokenId>{2, 3}));
}

}  // namespace
}  // namespace paceline::testing
