#include "engine/step_engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "engine/queue_limit.h"
#include "engine/run_alone.h"
#include "tests/engine/engine_fixture.h"
#include "tests/expect_error.h"

namespace paceline::testing {
namespace {

using Ids = std::vector<TokenId>;

TEST_F(EngineTest, LengthEndsAfterMaxTokensAndFreesEveryBlock) {
  engine();
  const Answer& got = run(greedy({1, 2, 3}, 5));
  EXPECT_EQ(got.tokens, (Ids{4, 5, 6, 7, 8}));
  EXPECT_EQ(got.ending->finish.reason, FinishReason::length);
  EXPECT_EQ(got.ending->stats.output_tokens, 5);
  EXPECT_EQ(got.ending->stats.prompt_tokens, 3);
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(EngineTest, EosRetiresASequenceEarly) {
  engine();
  const RequestId early = submit(greedy({28}, 10));
  const RequestId late = submit(greedy({1}, 10));
  run_all();
  EXPECT_EQ(answer(early).tokens, (Ids{29, 30}));
  EXPECT_EQ(answer(early).ending->finish.reason, FinishReason::stop);
  EXPECT_FALSE(answer(early).ending->finish.stop_token.has_value());
  EXPECT_EQ(answer(early).ending->stats.output_tokens, 3);
  EXPECT_EQ(answer(late).tokens.size(), 10u);
  EXPECT_EQ(runner_.num_runs, 10) << "both ran together";
}

TEST_F(EngineTest, IgnoreEosGoesOn) {
  engine();
  GenerateRequest request = greedy({29}, 4);
  request.ignore_eos = true;
  EXPECT_EQ(run(std::move(request)).tokens, (Ids{30, 31, 0, 1}));
}

TEST_F(EngineTest, AStopTokenEndsAndIsTheReason) {
  engine();
  GenerateRequest request = greedy({3}, 10);
  request.stop_token_ids = {6};
  const Answer& got = run(std::move(request));
  EXPECT_EQ(got.tokens, (Ids{4, 5}));
  EXPECT_EQ(got.ending->finish.stop_token, 6);
}

TEST_F(EngineTest, AStopStringAcrossTokensIsHeldBackAndNeverReleased) {
  engine();
  GenerateRequest request = greedy({0}, 20);
  request.stop_strings = {"xyz", "efg"};
  const Answer& got = run(std::move(request));
  EXPECT_EQ(got.tokens, (Ids{1, 2, 3, 4, 5, 6}));  // b c d e f g
  EXPECT_EQ(got.releasable, (std::vector<int64_t>{1, 2, 3, 3, 3, 3}));
  EXPECT_EQ(got.ending->finish.reason, FinishReason::stop);
  EXPECT_EQ(got.ending->finish.stop_string, 1);
}

TEST_F(EngineTest, AStopStringMayBePartOfTheText) {
  engine();
  GenerateRequest request = greedy({0}, 20);
  request.stop_strings = {"xyz", "efg"};
  request.includes_stop = true;
  const Answer& got = run(std::move(request));
  EXPECT_EQ(got.releasable, (std::vector<int64_t>{1, 2, 3, 3, 3, 6}));
  EXPECT_EQ(got.ending->finish.stop_string, 1);
}

TEST_F(EngineTest, NothingThatEndsIsDrawnBeforeTheLeastTokensAreThere) {
  engine();
  GenerateRequest request = greedy({29}, 10);
  request.stop_token_ids = {1};
  request.min_tokens = 3;
  request.n = 2;
  request.sampling.logit_bias = {{1, 0.5f}, {0, 10.0f}};  // what comes in place of an end
  const RequestId id = submit(std::move(request));
  run_all();
  for (const int32_t choice : {0, 1}) {
    const Answer& got = answer(id, choice);
    EXPECT_EQ(got.tokens, (Ids{30, 0, 0}));  // not 31, the end, and not 1 behind the 0
    EXPECT_EQ(got.ending->finish.stop_token, 1);
  }
}

TEST_F(EngineTest, WhatOnlyBeganAStopStringIsReleasedAtTheEnd) {
  engine();
  GenerateRequest request = greedy({0}, 5);
  request.stop_strings = {"efz"};
  EXPECT_EQ(run(std::move(request)).releasable, (std::vector<int64_t>{1, 2, 3, 3, 5}));
}

TEST_F(EngineTest, CancellationTakesEffectWithinOneStep) {
  engine();
  std::stop_source source;
  GenerateRequest request = greedy({0}, 20);
  request.cancelled = source.get_token();
  const RequestId by_token = submit(std::move(request));
  const RequestId by_id = submit(greedy({5}, 20));
  step();
  step();
  const int64_t rows = runner_.num_rows;
  source.request_stop();
  engine_->cancel(by_id);
  run_all();
  EXPECT_EQ(runner_.num_rows, rows);
  for (const RequestId id : {by_token, by_id}) {
    EXPECT_EQ(answer(id).tokens.size(), 2u);
    EXPECT_EQ(answer(id).ending->finish.reason, FinishReason::cancelled);
  }
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(EngineTest, ALateCancellationIsCountedAndHarmsNobody) {
  engine();
  const RequestId id = submit(greedy({0}, 2));
  run_all();
  engine_->cancel(id);
  engine_->cancel(12345);
  run_all();
  EXPECT_EQ(engine_->counters().late_cancellations, 2);
  EXPECT_EQ(run(greedy({1}, 2)).tokens, (Ids{2, 3}));
}

TEST_F(EngineTest, LongPromptsAreComputedInChunksOfTheTokenBudget) {
  engine();
  run(greedy(Ids(11, 5), 1));
  EXPECT_EQ(runner_.num_runs, 3);  // 4 + 4 + 3
  EXPECT_EQ(runner_.num_rows, 11);
}

TEST_F(EngineTest, OutputStopsAtTheEndOfTheContext) {
  engine({.limits = {.max_model_len = 8, .max_batched_tokens = 4}});
  const Answer& got = run(greedy({1, 2, 3}, 100));
  EXPECT_EQ(got.tokens.size(), 5u);
  EXPECT_EQ(got.ending->finish.reason, FinishReason::length);
}

TEST_F(EngineTest, OneSequencesShareOfThePoolBoundsIt) {
  engine({.limits = {.max_model_len = 64, .max_tokens_per_sequence = 6}});
  EXPECT_EQ(run(greedy({1, 2, 3}, 100)).tokens.size(), 3u);
  expect_error(ErrorCode::invalid, {"--max-tokens-per-sequence"},
               [&] { engine_->submit(greedy(Ids(6, 1), 1), channel_); });
}

TEST_F(EngineTest, BadRequestsNameTheFieldAtFault) {
  StepEngine& small = engine({.limits = {.max_model_len = 8, .max_batched_tokens = 4}});
  const auto refused = [&](ErrorCode code, const std::string& part, GenerateRequest request) {
    expect_error(code, {part}, [&] { small.submit(std::move(request), channel_); });
  };
  refused(ErrorCode::invalid, "prompt_ids: empty", greedy({}, 1));
  refused(ErrorCode::invalid, "prompt_ids[1]: the token id 32 is outside the vocabulary (0..31)",
          greedy({1, 32}, 1));
  refused(ErrorCode::invalid, "prompt_ids[0]", greedy({-1}, 1));
  refused(ErrorCode::invalid, "--max-model-len", greedy(Ids(9, 1), 1));
  refused(ErrorCode::invalid, "9 tokens (8 in your prompt; 1 for", greedy(Ids(8, 1), 1));
  refused(ErrorCode::invalid, "max_tokens", greedy({1}, -1));
  GenerateRequest request = greedy({1}, 1);
  request.stop_strings = {""};
  refused(ErrorCode::invalid, "stop[0]", request);
  request = greedy({1}, 1);
  request.stop_token_ids = {99};
  refused(ErrorCode::invalid, "stop_token_ids[0]", request);
  request = greedy({1}, 1);
  request.columns = {2, 32};
  refused(ErrorCode::invalid, "labels[1]: the token id 32", request);
  request = greedy({1}, 1);
  request.n = 0;
  refused(ErrorCode::invalid, "n: 0", request);
  request = greedy({}, 1);
  request.prompt_name = "text";
  refused(ErrorCode::invalid, "text: empty", request);
}

TEST_F(EngineTest, WhatCouldNeverFitTheCacheIsRefusedAtOnce) {
  engine({.num_blocks = 3});
  expect_error(ErrorCode::exhausted,
               {"cache", "25 tokens (5 in your prompt; 20 for", "length is 7 tokens"}, [&] {
                 engine_->submit(greedy({1, 2, 3, 4, 5}, 20), channel_);
               });
  EXPECT_EQ(run(greedy({1, 2, 3, 4, 5}, 2)).tokens, (Ids{6, 7}));
}

TEST_F(EngineTest, AFullQueueIsAnAnswer) {
  engine({.limits = {.max_model_len = 64, .max_batched_tokens = 4, .max_queued = 3}});
  for (int i = 0; i < 3; ++i) submit(greedy({1}, 2));
  EXPECT_FALSE(engine_->submit(greedy({1}, 2), channel_).has_value());
  run_all();
  EXPECT_TRUE(engine_->submit(greedy({1}, 2), channel_).has_value());
  run_all();
}

TEST_F(EngineTest, EachChoiceCountsInTheQueue) {
  engine({.limits = {
              .max_model_len = 64, .max_batched_tokens = 4, .max_num_seqs = 2, .max_queued = 4}});
  GenerateRequest three = greedy({1}, 6);
  three.n = 3;
  const RequestId first = submit(three);
  EXPECT_EQ(engine_->queue().num_sequences(), 3);
  EXPECT_FALSE(engine_->submit(three, channel_).has_value());
  submit(greedy({1}, 2));
  EXPECT_FALSE(engine_->submit(greedy({1}, 2), channel_).has_value());
  step();
  EXPECT_EQ(engine_->queue().num_sequences(), 2) << "two choices found no place yet";
  engine_->cancel(first);
  run_all();
  EXPECT_EQ(engine_->queue().num_sequences(), 0);
  three.n = 5;  // alone it may have more choices than all of it
  submit(three);
  EXPECT_FALSE(engine_->submit(greedy({1}, 2), channel_).has_value());
  run_all();
  EXPECT_EQ(engine_->queue().num_sequences(), 0);
}

TEST_F(EngineTest, WaitingPromptsMayFillTheCacheFourTimesUnlessAWindowLetsItHoldAnyLength) {
  engine({.num_blocks = 10, .block_size = 2});
  EXPECT_EQ(engine_->queue().max_tokens(), 80);
  // A step of one row needs two blocks of this window, one of two rows three.
  engine({.block_size = 2, .groups = {{.window = 3, .num_blocks = 2}}});
  EXPECT_EQ(engine_->queue().max_tokens(), std::numeric_limits<int64_t>::max());
  engine({.block_size = 2, .groups = {{.window = 3, .num_blocks = 1}}});
  EXPECT_EQ(engine_->queue().max_tokens(), 8);
}

TEST_F(EngineTest, AQueueOfLongPromptsIsFullToo) {
  engine({.limits = {.max_model_len = 64, .max_batched_tokens = 4, .max_queued_tokens = 5}});
  const GenerateRequest three = greedy({1, 2, 3}, 2), two = greedy({1, 2}, 2);
  const RequestId first = submit(three);
  EXPECT_FALSE(engine_->submit(three, channel_).has_value());
  submit(two);
  EXPECT_FALSE(engine_->submit(two, channel_).has_value());
  engine_->cancel(first);
  run_all();
  EXPECT_EQ(engine_->queue().num_tokens(), 0);
  submit(greedy({1, 2, 3, 4, 5, 6, 7}, 2));  // alone it may be longer than all of it
  EXPECT_FALSE(engine_->submit(greedy({1}, 2), channel_).has_value());
  run_all();
  EXPECT_EQ(engine_->queue().num_tokens(), 0);
}

TEST_F(EngineTest, PromptLogprobsAreThoseOfTheScript) {
  engine();
  const Ids ids = {1, 2, 9, 10, 11, 3, 4, 5, 6};
  GenerateRequest request = greedy(ids, 1);
  request.score_from = 0;
  request.sampling.num_top_logprobs = 2;
  const Answer& got = run(std::move(request));
  EXPECT_EQ(got.tokens, (Ids{7}));
  const auto& scored = got.prompt->scored;
  ASSERT_EQ(scored.size(), ids.size());
  EXPECT_FALSE(scored[0].logprob.has_value());
  for (size_t i = 1; i < ids.size(); ++i) {
    EXPECT_EQ(scored[i].id, ids[i]);
    // The script gives 20 to the successor and 0 to the other 31.
    const double total = std::log(std::exp(20.0) + 31.0);
    const double expected = (ids[i] == ids[i - 1] + 1 ? 20.0 : 0.0) - total;
    EXPECT_NEAR(*scored[i].logprob, expected, 1e-4);
    EXPECT_EQ(scored[i].top_logprobs[0].id, ids[i - 1] + 1);
  }
}

TEST_F(EngineTest, RequestsWithoutOutputSayHowLongTheyWaited) {
  engine({.limits = {.max_model_len = 64, .max_batched_tokens = 4, .max_num_seqs = 1}});
  const RequestId first = submit(greedy({1, 2, 3}, 0));
  const RequestId second = submit(greedy({4, 5, 6}, 0));
  run_all();
  EXPECT_GT(answer(first).ending->stats.prefill_seconds, 0);
  EXPECT_GE(answer(second).ending->stats.queue_seconds,
            answer(first).ending->stats.prefill_seconds);
}

TEST_F(EngineTest, ScoringFromAPositionSkipsWhatTheCacheHas) {
  engine();
  GenerateRequest first = greedy({1, 2, 3, 4, 5, 6}, 0);
  first.score_from = 0;
  const auto whole = run_alone(*engine_, first);
  const int64_t rows = runner_.num_rows;
  EXPECT_EQ(rows, 5) << "the last token's row is of no use";
  first.score_from = 4;
  const auto rest = run_alone(*engine_, first);
  EXPECT_EQ(runner_.num_rows - rows, 3) << "rows 2, 3, 4: whole blocks below the scored ones";
  ASSERT_EQ(rest.back().prompt->scored.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(rest.back().prompt->scored[i].logprob, whole.back().prompt->scored[i + 4].logprob);
  }
}

TEST_F(EngineTest, ColumnsAreTheRows) {
  engine();
  GenerateRequest request = greedy({4}, 0);
  request.columns = {5, 7};
  const Answer& got = run(request);
  EXPECT_EQ(got.prompt->column_logits, (std::vector<float>{20.0f, 0.0f}));
  EXPECT_TRUE(got.tokens.empty());
  request.want_row = true;
  const Answer& with_row = run(request);
  EXPECT_EQ(with_row.prompt->column_logits, (std::vector<float>{20.0f, 0.0f}));
  EXPECT_EQ(with_row.prompt->row.size(), 32u);
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(EngineTest, EqualPromptsOfDifferentClassesWaitInTheOrderInWhichTheyAreServed) {
  engine();
  const RequestId first = submit(greedy({1, 2, 3, 4, 5}, 2));
  GenerateRequest urgent = greedy({1, 2, 3, 4, 5}, 2);
  urgent.priority = -1;
  const RequestId second = submit(std::move(urgent));
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(answer(second).tokens, (Ids{6, 7}));
  EXPECT_EQ(answer(first).tokens, (Ids{6, 7}));
  EXPECT_EQ(answer(first).ending->stats.cached_tokens, 4);
  EXPECT_EQ(answer(second).ending->stats.cached_tokens, 0);
}

TEST_F(EngineTest, ChoicesShareTheirPromptAndTheWriterTakesACopy) {
  engine({.block_size = 4});
  GenerateRequest request = greedy({1, 2, 3, 4, 5, 6}, 6);
  request.n = 4;
  request.sampling.temperature = 1.5f;
  request.sampling.seed = 7;
  request.want_logprobs = true;
  const RequestId together = submit(request);
  run_all();
  EXPECT_EQ(runner_.num_rows, 6 + 4 * 5) << "the prompt was computed once";
  for (int32_t k = 0; k < 4; ++k) {
    GenerateRequest alone = request;
    alone.n = 1;
    alone.sampling.seed = 7 + static_cast<uint64_t>(k);
    alone.prefix = {.read = false, .write = PrefixUse::Write::none};
    const Answer& expected = run(alone);
    EXPECT_EQ(answer(together, k).tokens, expected.tokens) << k;
    EXPECT_EQ(answer(together, k).logprobs, expected.logprobs) << k;
  }
  EXPECT_EQ(free_blocks(), 64);
}

// A row with a NaN at position 6, and a row of -inf at position 9.
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

TEST_F(BrokenRows, NanAndNothingToDrawFailThatRequestAlone) {
  engine();
  const RequestId healthy = submit(greedy({1}, 5));
  for (const float temperature : {0.0f, 1.0f}) {
    for (const size_t prompt_length : {7, 10}) {
      GenerateRequest request = greedy(Ids(prompt_length, 1), 3);
      request.sampling.temperature = temperature;
      const RequestId id = submit(std::move(request));
      run_all();
      EXPECT_EQ(answer(id).ending->error->code, ErrorCode::numerical);
      EXPECT_NE(answer(id).ending->error->message.find("position"), std::string::npos);
    }
  }
  EXPECT_EQ(answer(healthy).tokens, (Ids{2, 3, 4, 5, 6}));
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(EngineTest, ARowThatIsNotFiniteNeverEntersThePrefixCache) {
  engine();
  runner_.is_bad = [](int32_t, int32_t position) { return position == 5; };
  const Answer& bad = run(greedy({1, 2, 3, 4, 5, 6, 7}, 2));
  EXPECT_EQ(bad.ending->error->code, ErrorCode::numerical);
  EXPECT_EQ(cache_->pool(0).num_cached(), 2) << "positions 0 to 3, a step before it";
  runner_.is_bad = nullptr;
  EXPECT_EQ(run(greedy({1, 2, 3, 4, 5, 6, 7}, 2)).tokens, (Ids{8, 9}));
}

}  // namespace
}  // namespace paceline::testing
