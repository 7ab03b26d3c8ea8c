// Runs of a runner's decode loop: the events of plain steps, in steps that are recorded one by one.
#include <gtest/gtest.h>

#include <limits>

#include "engine/step_record.h"
#include "tests/engine/engine_fixture.h"

namespace paceline::testing {
namespace {

class DecodeRunTest : public EngineTest, public StepObserver {
 protected:
  DecodeRunTest() { runner_.has_loop = true; }

  StepEngine& start(const Shape& shape) {
    StepEngine& made = engine(shape);
    made.set_observer(this);
    return made;
  }
  StepEngine& start() { return start(Shape{}); }

  void on_submitted(const Sequence& /*sequence*/, int64_t /*step*/) override {}
  void on_cancelled(RequestId /*id*/, int64_t /*step*/) override {}
  void on_step(const StepRecord& record) override { records_.push_back(record); }

  // The same requests on an engine without a loop.
  std::vector<TokenId> plain_tokens(const GenerateRequest& request) {
    runner_.has_loop = false;
    engine();
    std::vector<TokenId> tokens = run(request).tokens;
    runner_.has_loop = true;
    return tokens;
  }

  std::vector<StepRecord> records_;
};

TEST_F(DecodeRunTest, StepsAreRecordedOneByOne) {
  start();
  const RequestId a = submit(greedy({1, 2, 3}, 8)), b = submit(greedy({10}, 6));
  run_all();
  EXPECT_EQ(answer(a).tokens, (std::vector<TokenId>{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(answer(b).tokens, (std::vector<TokenId>{11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(runner_.loop.num_starts, 1);
  ASSERT_EQ(records_.size(), 8u);
  for (size_t i = 1; i < records_.size(); ++i) {
    const StepRecord& record = records_[i];
    const size_t count = i < 6 ? 2 : 1;
    EXPECT_EQ(record.step, static_cast<int64_t>(i));
    EXPECT_EQ(record.num_rows, static_cast<int64_t>(count));
    ASSERT_EQ(record.slices.size(), count);
    EXPECT_EQ(record.slices[0].id, a);
    EXPECT_EQ(record.slices[0].first, static_cast<int64_t>(2 + i));
    EXPECT_EQ(record.slices[0].count, 1);
    EXPECT_EQ(record.tokens.size(), count);
    EXPECT_TRUE(record.admitted.empty());
  }
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(DecodeRunTest, AStopStringEndsASequenceWhoseNextRowIsComputedAlready) {
  GenerateRequest request = greedy({1}, 20);
  request.stop_strings = {"fgh"};
  const std::vector<TokenId> plain = plain_tokens(request);
  start();
  const RequestId a = submit(request), b = submit(greedy({12}, 12));
  run_all();
  EXPECT_EQ(answer(a).tokens, plain);
  EXPECT_EQ(answer(a).ending->finish.stop_string, 0);
  EXPECT_EQ(answer(b).tokens.size(), 12u);
  EXPECT_EQ(runner_.loop.num_starts, 1) << "the other one runs on beside the gap";
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(DecodeRunTest, ManySequencesOfWhichHalfHaveEndedHaveARunOfTheirOwn) {
  runner_.loop.most = 12;
  start({.limits = {.max_model_len = 64, .max_batched_tokens = 64, .max_num_seqs = 12}});
  std::vector<RequestId> ids;
  for (int32_t i = 0; i < 12; ++i) ids.push_back(submit(greedy({i % 6 + 1}, i < 6 ? 6 : 20)));
  run_all();
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(answer(ids[i]).tokens.size(), i < 6 ? 6u : 20u);
  }
  EXPECT_EQ(runner_.loop.num_starts, 2);
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(DecodeRunTest, EosAndStopTokensEmptyTheirSlots) {
  start();
  GenerateRequest request = greedy({10}, 20);
  request.stop_token_ids = {14};
  const RequestId a = submit(request), b = submit(greedy({27}, 20)), c = submit(greedy({1}, 9));
  request.eos_tokens = {12};
  request.ignore_eos = true;
  const RequestId d = submit(request);
  run_all();
  EXPECT_EQ(answer(a).tokens, (std::vector<TokenId>{11, 12, 13}));
  EXPECT_EQ(answer(a).ending->finish.stop_token, 14);
  EXPECT_EQ(answer(b).tokens, (std::vector<TokenId>{28, 29, 30}));
  EXPECT_EQ(answer(b).ending->finish.reason, FinishReason::stop);
  EXPECT_EQ(answer(c).tokens.size(), 9u);
  EXPECT_EQ(answer(d).tokens, (std::vector<TokenId>{11, 12, 13}));
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(DecodeRunTest, ARequestThatComesIsAdmittedInTheStepAfterNext) {
  start();
  submit(greedy({1}, 20));
  step();
  step();
  step();
  ASSERT_EQ(runner_.loop.num_starts, 1);
  const int64_t computed = runner_.num_runs;
  submit(greedy({7}, 3));
  step();  // the step that was begun already
  EXPECT_EQ(runner_.num_runs, computed);
  EXPECT_TRUE(records_.back().admitted.empty());
  EXPECT_EQ(records_.back().tokens.size(), 1u);
  step();
  EXPECT_EQ(records_.back().admitted.size(), 1u);
  EXPECT_EQ(records_.back().tokens.size(), 2u);
  run_all();
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(DecodeRunTest, ACancellationEndsItsSequenceAtOnce) {
  start();
  const RequestId a = submit(greedy({1}, 20)), b = submit(greedy({5}, 8));
  for (int i = 0; i < 4; ++i) step();
  engine_->cancel(a);
  step();
  EXPECT_EQ(answer(a).ending->finish.reason, FinishReason::cancelled);
  EXPECT_EQ(answer(a).tokens.size(), 4u);
  EXPECT_EQ(answer(b).tokens.size(), 5u);
  run_all();
  EXPECT_EQ(answer(b).tokens.size(), 8u);
  EXPECT_EQ(free_blocks(), 64);
  submit(greedy({5}, 8));  // all are cancelled while a step is in flight
  for (int i = 0; i < 4; ++i) step();
  engine_->cancel(b + 1);
  EXPECT_FALSE(step());
  EXPECT_EQ(run(greedy({1}, 3)).tokens, (std::vector<TokenId>{2, 3, 4}));
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(DecodeRunTest, AFinishedSequencesPlaceIsRefilled) {
  start({.limits = {.max_model_len = 64, .max_batched_tokens = 4, .max_num_seqs = 2}});
  std::vector<RequestId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(submit(greedy({i + 1}, 4 + 3 * i)));
  run_all();
  for (int i = 0; i < 4; ++i) {
    const auto& tokens = answer(ids[static_cast<size_t>(i)]).tokens;
    ASSERT_EQ(std::ssize(tokens), 4 + 3 * i);
    for (size_t t = 0; t < tokens.size(); ++t) EXPECT_EQ(tokens[t], i + 2 + static_cast<int>(t));
  }
  EXPECT_GE(runner_.loop.num_starts, 3);
}

// Two sequences of 12 tokens on 8 blocks of 2.
TEST_F(DecodeRunTest, RunsTakeNoBlocksThatAreNotThere) {
  start({.num_blocks = 8});
  const RequestId a = submit(greedy({1}, 12)), b = submit(greedy({9}, 12));
  run_all();
  EXPECT_EQ(answer(a).tokens.size(), 12u);
  EXPECT_EQ(answer(b).tokens.size(), 12u);
  EXPECT_EQ(answer(b).tokens.back(), 21);
  EXPECT_EQ(engine_->counters().preemptions, 1);
  EXPECT_GE(runner_.loop.num_starts, 2);
  EXPECT_EQ(free_blocks(), 8);
}

TEST_F(DecodeRunTest, WhatNeedsTheEngineIsSteppedPlainly) {
  start();
  GenerateRequest request = greedy({1}, 6);
  request.banned_sequences = {{9, 4}};
  run(request);
  request = greedy({1}, 6);
  request.prediction = {2, 3, 4};
  run(request);
  EXPECT_EQ(runner_.loop.num_starts, 0);
  runner_.loop.most = 1;
  start();
  submit(greedy({1}, 4));
  submit(greedy({5}, 9));
  run_all();
  EXPECT_EQ(runner_.loop.num_starts, 1) << "when one is left";
}

// Token t is followed by t + 1, but for ends that come too early: then by token 0, which the
// request favours less.
TEST_F(DecodeRunTest, EndsAreForbiddenUntilMinTokensAreDrawn) {
  GenerateRequest request = greedy({27}, 9);
  request.stop_token_ids = {29, 5};
  request.sampling.logit_bias = {{29, 3.0f}, {0, 2.0f}, {kEos, 1.0f}};
  for (const int64_t min_tokens : {0, 1, 2, 3, 5, 6, 7, 9}) {
    for (const bool ignores_eos : {false, true}) {
      request.min_tokens = min_tokens;
      request.ignore_eos = ignores_eos;
      const std::vector<TokenId> plain = plain_tokens(request);
      runner_.loop.num_starts = 0;
      start();
      EXPECT_EQ(run(request).tokens, plain) << min_tokens;
      EXPECT_EQ(runner_.loop.num_starts, 1) << min_tokens;
    }
  }
  request.min_tokens = 5;
  start();
  const Answer& answered = run(request);
  EXPECT_EQ(answered.tokens, (std::vector<TokenId>{28, 0, 1, 2, 3, 4}));
  EXPECT_EQ(answered.ending->finish.stop_token, 5);
}

// What depends on no earlier token is no reason for a plan before each step.
TEST_F(DecodeRunTest, BannedTokensAndThoseThatCantBeFirstLeaveARunWhole) {
  GenerateRequest request = greedy({5}, 9);
  request.not_first = {6};
  request.banned_sequences = {{12}, {13}};
  request.sampling.logit_bias = {{0, 0.5f}, {8, 0.25f}};
  const std::vector<TokenId> plain = plain_tokens(request);
  runner_.loop.num_starts = 0;
  start();
  EXPECT_EQ(run(request).tokens, plain);
  EXPECT_EQ(runner_.loop.num_starts, 1);
}

TEST_F(DecodeRunTest, AdaptersAreThoseOfPlainSteps) {
  const auto with = [](TokenId first, size_t number, int64_t max_tokens) {
    GenerateRequest request = greedy({first}, max_tokens);
    if (number > 0) request.adapter = numbered_adapter(number);
    return request;
  };
  for (const bool adapts : {true, false}) {
    runner_.loop.adapts = adapts;
    runner_.loop.num_starts = 0;
    start({.limits = {.max_model_len = 64, .max_batched_tokens = 4, .max_adapters = 2}});
    const RequestId a = submit(with(1, 2, 9)), b = submit(with(5, 0, 12)),
                    c = submit(with(3, 1, 5));
    run_all();
    EXPECT_EQ(answer(a).tokens.size(), 9u);
    EXPECT_EQ(answer(b).tokens.size(), 12u);
    EXPECT_EQ(answer(c).tokens.size(), 5u);
    EXPECT_EQ(answer(b).tokens.back(), 17);
    EXPECT_EQ(runner_.loop.num_starts, 1) << "without them once the last one is alone, too";
    EXPECT_EQ(free_blocks(), 64);
  }
}

// The window of the first one releases a block that the second one needs, long before the blocks
// that the first one has would end its run.
TEST_F(DecodeRunTest, EndsWhereAWindowReleasesBlocksForAWaitingOne) {
  start({.block_size = 32,
         .limits = {.max_model_len = 64, .max_batched_tokens = 40},
         .groups = {{.window = 5, .num_blocks = 2}}});
  std::vector<TokenId> prompt(33, 1);
  const RequestId a = submit(greedy(prompt, 20)), b = submit(greedy({9}, 3));
  while (records_.empty() || records_.back().admitted.empty() ||
         records_.back().admitted[0].id != b) {
    ASSERT_TRUE(step());
  }
  EXPECT_LE(answer(a).tokens.size(), 7u) << "its window has passed the first block after four";
  EXPECT_GE(runner_.loop.num_starts, 1);
  run_all();
  EXPECT_EQ(answer(a).tokens.size(), 20u);
  EXPECT_EQ(answer(b).tokens, (std::vector<TokenId>{10, 11, 12}));
  EXPECT_EQ(free_blocks(), 2);
}

// A sequence whose answer ends in some way behind `num_output` tokens, and a request that goes on
// from there: how many tokens it finds.
class DecodeRunOfStates : public DecodeRunTest {
 protected:
  enum class End { length, token, text, cancelled };

  int64_t found_behind(End end, int64_t num_output, bool has_loop) {
    runner_.has_loop = has_loop;
    runner_.loop.num_starts = 0;
    start({.block_size = 16,
           .limits = {.max_model_len = 2048, .max_batched_tokens = 64},
           .groups = {{.num_blocks = 300}, {.num_blocks = 6, .is_recurrent = true}}});
    GenerateRequest request = greedy(std::vector<TokenId>(20, 1), 40);
    const TokenId last = 1 + static_cast<TokenId>(num_output);
    if (end == End::length) request.max_tokens = num_output;
    if (end == End::token) request.stop_token_ids = {last + 1};
    if (end == End::text) request.stop_strings = {std::string(letter(last).bytes)};
    const RequestId id = submit(request);
    step();  // its prompt
    while (std::ssize(answer(id).tokens) < num_output) step();
    if (end == End::cancelled) engine_->cancel(id);
    run_all();
    EXPECT_EQ(runner_.loop.num_starts, has_loop ? 1 : 0);
    GenerateRequest next = greedy(request.prompt, 1);
    const auto& answered = answer(id).tokens;
    EXPECT_EQ(std::ssize(answered), num_output);
    next.prompt.insert(next.prompt.end(), answered.begin(), answered.end());
    next.prompt.push_back(9);
    return run(next).ending->stats.cached_tokens;
  }
};

// A slot that its sequence leaves without the loop's knowing has begun one row more.
TEST_F(DecodeRunOfStates, AStateIsFoundUnlessTheNextRowHasEndedItsChunk) {
  for (const End end : {End::length, End::token, End::text, End::cancelled}) {
    for (int64_t num_output = 9; num_output < 25; ++num_output) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(end) << ", " << num_output);
      const int64_t num_computed = 20 + num_output - (end == End::token ? 0 : 1);
      EXPECT_EQ(found_behind(end, num_output, false), num_computed / 16 * 16);
      const bool goes_on = end == End::text || end == End::cancelled;
      const bool is_gone = goes_on && num_computed % 16 == 15;
      EXPECT_EQ(found_behind(end, num_output, true), is_gone ? 0 : num_computed / 16 * 16);
    }
  }
}

TEST_F(DecodeRunOfStates, StatesAreSavedEvery512TokensOfARun) {
  for (const bool has_loop : {false, true}) {
    runner_.has_loop = has_loop;
    start({.block_size = 16,
           .limits = {.max_model_len = 2048, .max_batched_tokens = 64},
           .groups = {{.num_blocks = 300}, {.num_blocks = 6, .is_recurrent = true}}});
    GenerateRequest request = greedy(std::vector<TokenId>(20, 1), 1100);
    request.eos_tokens.clear();
    const std::vector<TokenId> answered = run(request).tokens;
    const auto found = [&](int64_t shared) {
      GenerateRequest next = greedy(request.prompt, 1);
      next.prompt.insert(next.prompt.end(), answered.begin(), answered.begin() + shared - 20);
      next.prompt.insert(next.prompt.end(), 40, 7);
      return run(next).ending->stats.cached_tokens;
    };
    EXPECT_EQ(found(1040), 1024) << has_loop;
    EXPECT_EQ(found(1020), 512) << has_loop;
  }
}

TEST_F(DecodeRunTest, TakesAllSettingsOfTheSampler) {
  std::vector<GenerateRequest> requests(6, greedy({1, 2, 3}, 9));
  requests[0].sampling.presence_penalty = 2.0f;
  requests[1].sampling = {{.temperature = 1, .top_k = 5, .seed = 3}};
  requests[2].sampling.logit_bias = {{6, -100.0f}, {9, 15.0f}};
  requests[3].want_logprobs = true;
  requests[3].sampling.num_top_logprobs = 2;
  requests[4].allowed_token_ids = {4, 5, 6, 10, 11};
  requests[5].sampling = {{.temperature = 1.5f, .repetition_penalty = 1.5f, .seed = 8}};
  requests[5].want_logprobs = true;
  requests[5].sampling.logprob_token_ids = {7, 9};
  for (const GenerateRequest& request : requests) {
    const std::vector<TokenId> plain = plain_tokens(request);
    runner_.loop.num_starts = 0;
    start();
    EXPECT_EQ(run(request).tokens, plain);
    EXPECT_GE(runner_.loop.num_starts, 1);
  }
}

TEST_F(DecodeRunTest, AnErrorEndsTheRunsSequencesAlone) {
  start();
  const RequestId a = submit(greedy({1}, 20)), b = submit(greedy({5}, 20));
  runner_.loop.fails_at_step = 4;
  run_all();
  for (const RequestId id : {a, b}) {
    EXPECT_EQ(answer(id).ending->error->code, ErrorCode::internal);
    EXPECT_EQ(answer(id).ending->error->message, "the loop fails");
  }
  EXPECT_EQ(free_blocks(), 64);
  EXPECT_EQ(run(greedy({1}, 5)).tokens.size(), 5u);
}

TEST_F(DecodeRunTest, ABadRowEndsItsSequence) {
  start();
  runner_.is_bad = [](int32_t token, int32_t) { return token == 6; };
  const RequestId a = submit(greedy({1}, 20)), b = submit(greedy({15}, 9));
  run_all();
  EXPECT_EQ(answer(a).ending->error->code, ErrorCode::numerical);
  EXPECT_EQ(answer(a).ending->error->message, "position 5: the state holds a NaN or an infinity");
  EXPECT_EQ(answer(b).tokens.size(), 9u);
}

TEST_F(DecodeRunTest, LogprobsAreThoseOfPlainSteps) {
  GenerateRequest request = greedy({1}, 7);
  request.want_logprobs = true;
  runner_.has_loop = false;
  engine();
  const std::vector<float> plain = run(request).logprobs;
  runner_.has_loop = true;
  start();
  EXPECT_EQ(run(request).logprobs, plain);
  EXPECT_EQ(runner_.loop.num_starts, 1);
}

}  // namespace
}  // namespace paceline::testing
