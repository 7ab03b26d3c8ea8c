// Drafts in the engine: what they save, and that nobody sees them.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "tests/engine/engine_fixture.h"
#include "tests/engine/script_drafter.h"

namespace paceline::testing {
namespace {

class SpeculationTest : public EngineTest {
 protected:
  static bool never(int64_t /*position*/) { return false; }
  static bool always(int64_t /*position*/) { return true; }

  // `errs`: at which positions the drafter is wrong.
  StepEngine& speculating(std::function<bool(int64_t)> errs, int64_t num_tokens = 4,
                          Shape shape = {}) {
    drafter_.emplace(kVocab, count_up, std::move(errs));
    shape.limits.max_batched_tokens = std::max<int64_t>(shape.limits.max_batched_tokens, 16);
    shape.limits.speculation = {.num_tokens = num_tokens, .adapts = false};
    shape.drafter = &*drafter_;
    return engine(shape);
  }
  const SpeculationCounters& counters() const { return engine_->counters().speculation; }

  std::optional<ScriptDrafter> drafter_;
};

TEST_F(SpeculationTest, SpeculativeOutputMatchesPlainTargetDecoding) {
  engine({.limits = {.max_model_len = 64, .max_batched_tokens = 16}});
  const std::vector<TokenId> plain = run(greedy({1, 2}, 20)).tokens;
  ASSERT_EQ(plain.size(), 20);
  for (int64_t k = 1; k <= 8; ++k) {
    for (int64_t every = 1; every <= 5; ++every) {
      speculating([every](int64_t position) { return position % every == 0; }, k);
      EXPECT_EQ(run(greedy({1, 2}, 20)).tokens, plain) << k << " " << every;
    }
  }
}

TEST_F(SpeculationTest, AFullDraftGivesOneTokenMore) {
  speculating(never, 4);
  submit(greedy({1}, 11));
  int64_t num_steps = 0;
  while (step()) ++num_steps;
  // The prompt's step draws one token, two full drafts of four give five each.
  EXPECT_EQ(num_steps + 1, 3);
  EXPECT_EQ(counters().drafts, 2);
  EXPECT_EQ(counters().drafted_tokens, 8);
  EXPECT_EQ(counters().accepted_tokens, 8);
  EXPECT_EQ(counters().accepted_at[0], 2);
  EXPECT_EQ(counters().accepted_at[3], 2);
  EXPECT_EQ(counters().accepted_at[4], 0);
}

TEST_F(SpeculationTest, AWrongDraftGivesTheTokenOfPlainDecoding) {
  speculating(always, 4);
  const Answer& answer = run(greedy({1}, 5));
  EXPECT_EQ(answer.tokens, (std::vector<TokenId>{2, 3, 4, 5, 6}));
  EXPECT_EQ(answer.ending->stats.accepted_tokens, 0);
  EXPECT_GT(answer.ending->stats.drafted_tokens, 0);
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(SpeculationTest, NothingIsDraftedBeyondTheLastToken) {
  speculating(never, 8);
  const Answer& answer = run(greedy({1}, 6));
  EXPECT_EQ(answer.tokens.size(), 6);
  EXPECT_EQ(answer.ending->stats.drafted_tokens, 4);
  EXPECT_EQ(answer.ending->stats.accepted_tokens, 4);
}

TEST_F(SpeculationTest, EosInTheMiddleOfADraftEndsTheSequence) {
  speculating(never, 8);
  const Answer& answer = run(greedy({26}, 20));
  EXPECT_EQ(answer.tokens, (std::vector<TokenId>{27, 28, 29, 30}));
  EXPECT_EQ(answer.ending->finish.reason, FinishReason::stop);
  EXPECT_EQ(answer.ending->stats.output_tokens, 5);
  EXPECT_EQ(runner_.num_runs, 2);
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(SpeculationTest, AStopStringAcrossADraftsTokensEnds) {
  speculating(never, 6);
  GenerateRequest request = greedy({0}, 20);
  request.stop_strings = {"ef"};
  const Answer& answer = run(std::move(request));
  EXPECT_EQ(answer.tokens, (std::vector<TokenId>{1, 2, 3, 4, 5}));
  EXPECT_EQ(answer.ending->finish.stop_string, 0);
  EXPECT_EQ(answer.releasable.back(), 3);
}

TEST_F(SpeculationTest, LeastTokensAreCountedThroughADraft) {
  speculating(never, 6);
  GenerateRequest request = greedy({1}, 20);
  request.stop_token_ids = {5, 9};
  request.min_tokens = 6;  // 5 is forbidden: the script's second choice, token 0, follows 4
  const std::vector<TokenId> found = run(request).tokens;
  engine({.limits = {.max_model_len = 64, .max_batched_tokens = 16}});
  EXPECT_EQ(found, run(request).tokens);
  EXPECT_GE(found.size(), 6);
}

TEST_F(SpeculationTest, ANanInARowThatIsThrownAwayFailsNobody) {
  speculating([](int64_t position) { return position == 4; }, 4);
  // The wrong token at position 4 is 6; only the draft has it there.
  runner_.is_bad = [](int32_t token, int32_t position) { return token == 6 && position == 4; };
  EXPECT_EQ(run(greedy({1}, 8)).ending->finish.reason, FinishReason::length);
}

TEST_F(SpeculationTest, ANanInARowThatCountsFailsTheSequenceWhereItStands) {
  speculating(never, 4);
  runner_.is_bad = [](int32_t token, int32_t /*position*/) { return token == 5; };
  const Answer& answer = run(greedy({1}, 12));
  EXPECT_EQ(answer.tokens, (std::vector<TokenId>{2, 3, 4, 5}));
  EXPECT_EQ(answer.ending->error->code, ErrorCode::numerical);
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(SpeculationTest, OnlyAcceptedRowsEnterThePrefixCache) {
  speculating(always, 6);
  run(greedy({1, 2, 3, 4}, 8));
  // Its tokens are 1 to 12, the last one without keys: five blocks of two.
  const Answer& answer = run(greedy({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, 1));
  EXPECT_EQ(answer.ending->stats.cached_tokens, 10);
}

TEST_F(SpeculationTest, AFailingDrafterMeansPlainDecoding) {
  speculating(never, 4);
  drafter_->fails = [](int64_t proposal) { return proposal == 2; };
  const Answer& answer = run(greedy({1}, 20));
  EXPECT_EQ(answer.tokens.size(), 20);
  EXPECT_EQ(answer.ending->finish.reason, FinishReason::length);
  EXPECT_EQ(counters().failures, 1);
  EXPECT_EQ(counters().drafts, 1);
  EXPECT_EQ(drafter_->num_proposals, 2);
}

TEST_F(SpeculationTest, ARequestMayDeclineIt) {
  speculating(never, 4);
  GenerateRequest request = greedy({1}, 20);
  request.speculation = false;
  EXPECT_EQ(run(std::move(request)).tokens.size(), 20);
  EXPECT_EQ(counters().drafts, 0);
}

TEST_F(SpeculationTest, ADraftTakesNoRowFromAPrompt) {
  Shape shape;
  shape.limits = {.max_model_len = 64, .max_batched_tokens = 16};
  speculating(never, 4, shape);
  const RequestId first = submit(greedy({1}, 25));
  step();
  step();
  ASSERT_EQ(counters().drafted_tokens, 4);
  submit(greedy(std::vector<TokenId>(40, 3), 2));  // more than a step's rows
  step();
  EXPECT_EQ(counters().drafted_tokens, 4);  // 15 rows of the prompt, one of the decode
  run_all();
  EXPECT_EQ(answer(first).tokens.size(), 25);
}

TEST_F(SpeculationTest, APredictionIsDraftedWithoutADrafter) {
  Shape shape;
  shape.limits = {.max_model_len = 64, .max_batched_tokens = 16};
  shape.limits.speculation.adapts = false;
  engine(shape);
  GenerateRequest request = greedy({1}, 20);
  for (TokenId id = 2; id < 12; ++id) request.prediction.push_back(id);
  request.prediction.insert(request.prediction.end(), {3, 3, 14, 15, 16, 17, 18, 19, 20});
  const Answer& answer = run(std::move(request));
  EXPECT_EQ(answer.tokens.size(), 20);
  EXPECT_EQ(answer.tokens.back(), 21);
  EXPECT_GE(answer.ending->stats.accepted_tokens, 12);
  EXPECT_GT(answer.ending->stats.drafted_tokens, answer.ending->stats.accepted_tokens);
  EXPECT_LT(runner_.num_runs, 8);
}

TEST_F(SpeculationTest, APreemptedSequenceDraftsAgain) {
  Shape shape{.num_blocks = 12, .block_size = 1};
  shape.limits = {.max_model_len = 12, .max_batched_tokens = 16};
  speculating(never, 3, shape);
  const RequestId first = submit(greedy({1, 2}, 10));
  const RequestId second = submit(greedy({5, 6}, 10));
  run_all();
  EXPECT_GT(engine_->counters().preemptions, 0);
  EXPECT_EQ(answer(first).tokens, (std::vector<TokenId>{3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(answer(second).tokens, (std::vector<TokenId>{7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
  EXPECT_GT(drafter_->num_begun, 2);
}

// Reads a prompt for so long that drafts would never pay if each took that time.
class SlowReader : public ScriptDrafter {
 public:
  using ScriptDrafter::ScriptDrafter;
  std::unique_ptr<DraftState> begin(std::span<const int32_t> prompt,
                                    std::span<const int32_t> prediction) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return ScriptDrafter::begin(prompt, prediction);
  }
};

TEST_F(SpeculationTest, TheTimeToReadAPromptIsNotOneOfDrafts) {
  SlowReader drafter(kVocab, count_up, never);
  Shape shape{.drafter = &drafter};
  shape.limits = {.max_model_len = 64, .max_batched_tokens = 16, .speculation = {.num_tokens = 4}};
  engine(shape);
  const auto slow_step = [](const Engine&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  // Three requests are enough unless other work delays the very steps that drafted.
  for (int32_t i = 0; i < 20 && counters().drafted_tokens <= 20; ++i) {
    const RequestId id = submit(greedy({1, 2 + i}, 25));
    do {
      engine_->inspect(slow_step);
    } while (step());
    EXPECT_EQ(answer(id).tokens.size(), 25);
  }
  EXPECT_GT(counters().drafted_tokens, 20);
}

class ComputingDrafter : public ScriptDrafter {
 public:
  using ScriptDrafter::ScriptDrafter;
  bool computes_prompts() const override { return true; }
};

// Until it is known whether drafts pay.
TEST_F(SpeculationTest, AnEighthOfTheSequencesBeginsInAStepWhereADrafterComputesPrompts) {
  ComputingDrafter drafter(kVocab, count_up, never);
  Shape shape{.num_blocks = 400, .drafter = &drafter};
  shape.limits = {.max_model_len = 64, .max_batched_tokens = 128, .speculation = {.num_tokens = 4}};
  engine(shape);
  for (int32_t i = 0; i < 16; ++i) submit(greedy({1, 1 + i % 4}, 25));
  int64_t most_in_a_step = 0;
  bool goes_on = true;
  while (goes_on) {
    engine_->inspect(
        [](const Engine&) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
    const int64_t before = drafter.num_begun;
    goes_on = step();
    most_in_a_step = std::max(most_in_a_step, drafter.num_begun - before);
  }
  EXPECT_EQ(most_in_a_step, 2);
  EXPECT_GT(drafter.num_begun, 2);
  engine_.reset();
}

TEST_F(SpeculationTest, WhereDraftsDontPayFewSequencesTry) {
  ComputingDrafter drafter(kVocab, count_up, [](int64_t) { return true; });
  Shape shape{.num_blocks = 400, .drafter = &drafter};
  shape.limits = {.max_model_len = 64, .max_batched_tokens = 128, .speculation = {.num_tokens = 4}};
  engine(shape);
  const auto run_sequences = [&](int32_t count) {
    const int64_t before = drafter.num_begun;
    for (int32_t i = 0; i < count; ++i) submit(greedy({1, 1 + i % 4}, 25));
    do {
      engine_->inspect(
          [](const Engine&) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
    } while (step());
    return drafter.num_begun - before;
  };
  // Every draft is wrong, which the first ones show.
  for (int i = 0; i < 4; ++i) run_sequences(8);
  int64_t tried = 0;
  for (int i = 0; i < 8; ++i) tried += run_sequences(8);
  // One in eight would, in some step of 64: here are 200.
  EXPECT_GE(tried, 2) << "of 64 sequences";
  EXPECT_LE(tried, 4);
  engine_.reset();
}

}  // namespace
}  // namespace paceline::testing
