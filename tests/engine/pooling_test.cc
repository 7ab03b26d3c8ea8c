// Pooled states: every pooling, however the prompt is cut, beside other requests.
#include <cmath>

#include "base/error.h"
#include "tests/engine/engine_fixture.h"
#include "tests/expect_error.h"

namespace paceline::testing {
namespace {

const std::vector<TokenId> kPrompt = {5, 9, 2, 7, 3, 11, 4};

GenerateRequest pooled(Pooling pooling, std::vector<TokenId> prompt = kPrompt) {
  return {.prompt = std::move(prompt), .max_tokens = 0, .pooling = pooling};
}

struct PoolingCase {
  Pooling pooling;
  std::vector<float> expected;  // of kPrompt's tokens and positions
};

const std::vector<PoolingCase>& cases() {
  static const std::vector<PoolingCase> all = {
      {Pooling::last, {4, 6}},
      {Pooling::first, {5, 0}},
      {Pooling::mean, {41.0f / 7, 21.0f / 7}},
      {Pooling::weighted_mean, {166.0f / 28, 112.0f / 28}},
      {Pooling::mean_sqrt,
       {static_cast<float>(41 / std::sqrt(7.0)), static_cast<float>(21 / std::sqrt(7.0))}},
      {Pooling::max, {11, 6}},
  };
  return all;
}

class PoolingTest : public EngineTest {};

TEST_F(PoolingTest, EveryPoolingInEveryChunk) {
  for (const int64_t rows : {1, 2, 3, 4, 7, 64}) {
    SCOPED_TRACE(rows);
    engine({.limits = {.max_model_len = 64, .max_batched_tokens = rows}});
    for (const PoolingCase& one : cases()) {
      const Answer& answer = run(pooled(one.pooling));
      ASSERT_NE(answer.prompt, nullptr);
      EXPECT_EQ(answer.prompt->pooled, one.expected) << static_cast<int>(one.pooling);
      EXPECT_EQ(answer.ending->finish.reason, FinishReason::length);
      EXPECT_EQ(answer.ending->stats.prompt_tokens, 7);
      EXPECT_TRUE(answer.tokens.empty());
    }
  }
}

TEST_F(PoolingTest, EarlierPositionsAreLeftOutInEveryChunk) {
  const std::vector<PoolingCase> behind_two = {
      {Pooling::last, {4, 6}},
      {Pooling::first, {2, 2}},
      {Pooling::mean, {27.0f / 5, 20.0f / 5}},
      {Pooling::weighted_mean, {143.0f / 25, 110.0f / 25}},
      {Pooling::mean_sqrt,
       {static_cast<float>(27 / std::sqrt(5.0)), static_cast<float>(20 / std::sqrt(5.0))}},
      {Pooling::max, {11, 6}},
  };
  for (const int64_t rows : {1, 2, 3, 4, 7, 64}) {
    SCOPED_TRACE(rows);
    engine({.limits = {.max_model_len = 64, .max_batched_tokens = rows}});
    for (const PoolingCase& one : behind_two) {
      GenerateRequest request = pooled(one.pooling);
      request.pool_from = 2;
      EXPECT_EQ(run(request).prompt->pooled, one.expected) << static_cast<int>(one.pooling);
    }
  }
  GenerateRequest nothing = pooled(Pooling::mean);
  nothing.pool_from = 7;
  expect_error(ErrorCode::invalid, {"prompt_ids", "7 tokens", "aren't pooled"},
               [&] { engine_->check(nothing); });
}

TEST_F(PoolingTest, OnlyTheLastTokensStateTakesRowsFromThePrefixCache) {
  engine();
  run(pooled(Pooling::last));
  for (const PoolingCase& one : cases()) {
    const Answer& answer = run(pooled(one.pooling));
    EXPECT_EQ(answer.prompt->pooled, one.expected);
    EXPECT_EQ(answer.ending->stats.cached_tokens, one.pooling == Pooling::last ? 6 : 0);
  }
}

TEST_F(PoolingTest, BesideGenerationAndPreempted) {
  // Blocks for one of them: the generation drives the longer prompts out again and again.
  engine({.num_blocks = 10, .limits = {.max_model_len = 20, .max_batched_tokens = 3}});
  std::vector<RequestId> ids;
  const RequestId text = submit(greedy({1, 2, 3}, 12));
  for (const PoolingCase& one : cases()) ids.push_back(submit(pooled(one.pooling)));
  const RequestId other = submit(greedy({4, 5}, 12));
  run_all();
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(answer(ids[i]).prompt->pooled, cases()[i].expected);
  }
  EXPECT_EQ(answer(text).tokens, (std::vector<TokenId>{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(answer(other).tokens.size(), 12u);
  EXPECT_GT(engine_->counters().preemptions, 0);
}

TEST_F(PoolingTest, PreemptedInTheMiddleItBeginsAgain) {
  engine({.limits = {.max_model_len = 64, .max_batched_tokens = 2, .max_num_seqs = 1}});
  const RequestId pooled_id = submit(pooled(Pooling::mean));
  step();
  step();  // four of its rows are pooled
  engine_->defer(pooled_id);
  const RequestId text = submit(greedy({1, 2, 3}, 2));
  run_all();
  EXPECT_EQ(answer(text).tokens, (std::vector<TokenId>{4, 5}));
  EXPECT_EQ(answer(pooled_id).ending->stats.preemptions, 1);
  EXPECT_EQ(answer(pooled_id).prompt->pooled, cases()[2].expected);
}

TEST_F(PoolingTest, CancelledOrNotFiniteItHasNoResult) {
  engine({.limits = {.max_model_len = 64, .max_batched_tokens = 2}});
  const RequestId cancelled = submit(pooled(Pooling::mean));
  step();
  engine_->cancel(cancelled);
  run_all();
  EXPECT_EQ(answer(cancelled).ending->finish.reason, FinishReason::cancelled);
  EXPECT_TRUE(answer(cancelled).prompt == nullptr || answer(cancelled).prompt->pooled.empty());

  runner_.is_bad = [](int32_t token, int32_t position) { return token == 3 && position == 4; };
  const Answer& failed = run(pooled(Pooling::mean));
  EXPECT_EQ(failed.ending->error->code, ErrorCode::numerical);
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(PoolingTest, RefusesOtherResultsBeside) {
  engine();
  for (const auto& change :
       std::vector<void (*)(GenerateRequest&)>{[](GenerateRequest& r) { r.max_tokens = 1; },
                                               [](GenerateRequest& r) { r.score_from = 0; },
                                               [](GenerateRequest& r) { r.want_row = true; },
                                               [](GenerateRequest& r) { r.columns = {1}; },
                                               [](GenerateRequest& r) { r.prefix.hold = true; }}) {
    GenerateRequest request = pooled(Pooling::last);
    change(request);
    expect_error(ErrorCode::invalid, {"pooling"},
                 [&] { engine_->submit(std::move(request), channel_); });
  }
}

// A model that attends in both directions.
class WholeTest : public PoolingTest {
 protected:
  Shape shape(int64_t max_batched_tokens) {
    return {.limits = {.max_model_len = 64,
                       .max_batched_tokens = max_batched_tokens,
                       .max_chunk = 2,
                       .bidirectional = true}};
  }
};

TEST_F(WholeTest, APromptIsComputedInOneStepAndNeverCached) {
  engine(shape(7));
  for (int round = 0; round < 2; ++round) {
    for (const PoolingCase& one : cases()) {
      const int64_t num_runs = runner_.num_runs;
      const Answer& answer = run(pooled(one.pooling));
      EXPECT_EQ(answer.prompt->pooled, one.expected);
      EXPECT_EQ(answer.ending->stats.cached_tokens, 0);
      EXPECT_EQ(runner_.num_runs, num_runs + 1);
    }
  }
  EXPECT_EQ(cache_->pool(0).num_cached(), 0);
}

TEST_F(WholeTest, SeveralShareAStepAndNoneIsCut) {
  engine(shape(16));
  std::vector<RequestId> ids;
  for (int i = 0; i < 6; ++i) ids.push_back(submit(pooled(Pooling::mean)));
  run_all();
  EXPECT_EQ(runner_.num_runs, 3);  // two of seven tokens in sixteen rows
  for (const RequestId id : ids) EXPECT_EQ(answer(id).prompt->pooled, cases()[2].expected);
}

TEST_F(WholeTest, RefusesLongerPromptsAndOtherRequests) {
  engine(shape(6));
  expect_error(ErrorCode::invalid,
               {"7 in your prompt", "length is 6 tokens", "--max-num-batched-tokens"},
               [&] { engine_->submit(pooled(Pooling::mean), channel_); });
  expect_error(ErrorCode::unsupported, {"both directions", "embeddings"}, [&] {
    engine_->submit(greedy({1, 2}, 3), channel_);
  });
  GenerateRequest scored = greedy({1, 2}, 0);
  scored.score_from = 0;
  expect_error(ErrorCode::unsupported, {"both directions"},
               [&] { engine_->submit(std::move(scored), channel_); });
}

}  // namespace
}  // namespace paceline::testing
