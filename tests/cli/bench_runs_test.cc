#include "cli/bench_runs.h"
#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace paceline {
namespace {

using testing::Key;
using testing::UnorderedElementsAre;

constexpr int64_t kKvBytes = 2 * 2 * 8 * 4;  // of a token: layers, keys and values, head, float32

constexpr std::string_view kTiny =
    R"({"model_type": "llama", "vocab_size": 50, "hidden_size": 16, "intermediate_size": 16,
        "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
        "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "hidden_act": "silu", "tie_word_embeddings": true, "torch_dtype": "float32"})";

class BenchRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) /
                 ("paceline-bench-runs." + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ / "config.json") << kTiny;
    // Steps of 32 rows; blocks of one token, so that prompts often share a first block.
    model_ = load_model({.model = directory_,
                         .load_format = LoadFormat::dummy,
                         .max_model_len = 200,
                         .block_size = 1,
                         .max_num_batched_tokens = 32,
                         .max_num_seqs = 8,
                         .num_threads = 1});
    runner_.emplace(*model_, 2.5);
    runner_->warm_up();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  BenchSample make(const BenchRun& run) {
    runner_->prepare(run);
    runner_->run(run);
    return runner_->run(run);  // results must not depend on earlier runs
  }

  std::filesystem::path directory_;
  std::unique_ptr<LoadedModel> model_;
  std::optional<BenchRunner> runner_;
};

TEST_F(BenchRunnerTest, PrefillComputesTheWholePromptEveryTime) {
  const BenchSample sample = make({.test = BenchTest::prefill, .prompt_tokens = 100});
  EXPECT_EQ(sample.tokens, 100);
  EXPECT_EQ(sample.rows, 100);
  EXPECT_EQ(sample.cached_tokens, 0);
  EXPECT_EQ(sample.steps, 4);  // of 32 rows
  EXPECT_EQ(sample.kv_bytes, (32 + 64 + 96 + 100) * kKvBytes);
  EXPECT_GT(sample.seconds, 0);
  EXPECT_EQ(sample.unit_seconds, sample.seconds);
}

TEST_F(BenchRunnerTest, DecodeCountsTheStepsBehindTheContext) {
  const BenchSample sample =
      make({.test = BenchTest::decode, .prompt_tokens = 100, .output_tokens = 20});
  EXPECT_EQ(sample.tokens, 20);
  EXPECT_EQ(sample.rows, 20);
  EXPECT_EQ(sample.head_rows, 20);
  EXPECT_EQ(sample.steps, 20);
  // The first row is the token that prefill drew.
  EXPECT_EQ(sample.kv_bytes, (101 + 120) * 20 / 2 * kKvBytes);
  EXPECT_DOUBLE_EQ(sample.unit_seconds, sample.seconds / 20);
}

TEST_F(BenchRunnerTest, BatchCountsStepsOfAllSequencesAlone) {
  const BenchSample sample =
      make({.test = BenchTest::batch, .prompt_tokens = 20, .output_tokens = 30, .sequences = 4});
  EXPECT_EQ(sample.tokens % 4, 0);
  EXPECT_EQ(sample.tokens, 4 * sample.steps);
  EXPECT_GE(sample.steps, 20);
  EXPECT_LT(sample.steps, 30);
  // Each row sees its prompt, and at most all but the last of its output.
  EXPECT_GT(sample.kv_bytes, sample.tokens * 20 * kKvBytes);
  EXPECT_LT(sample.kv_bytes, sample.tokens * 50 * kKvBytes);
  EXPECT_EQ(sample.cached_tokens, 0);
  EXPECT_THAT(sample.figures, UnorderedElementsAre(Key("total_tokens_per_second")));
}

TEST_F(BenchRunnerTest, MixedComputesThePromptBesideItsStreams) {
  const BenchSample sample = make({.test = BenchTest::mixed, .prompt_tokens = 100, .sequences = 3});
  EXPECT_GE(sample.rows, 100);
  EXPECT_GT(sample.head_rows, 0);
  EXPECT_LE(sample.head_rows, 3 * sample.steps + 1);
  EXPECT_EQ(sample.cached_tokens, 0);
  EXPECT_THAT(sample.figures,
              UnorderedElementsAre(Key("alone_seconds"), Key("unloaded_step_seconds"),
                                   Key("longest_gap_seconds")));
}

TEST_F(BenchRunnerTest, ClassifyComputesPromptsAndNoOutput) {
  const BenchSample sample =
      make({.test = BenchTest::classify, .prompt_tokens = 20, .sequences = 5});
  EXPECT_EQ(sample.rows, 4 * 5 * 20);
  EXPECT_EQ(sample.head_rows, 0);
  EXPECT_EQ(sample.cached_tokens, 0);
}

TEST_F(BenchRunnerTest, CachedComputesTheEndOfThePrompt) {
  const BenchSample sample = make({.test = BenchTest::cached, .prompt_tokens = 100});
  EXPECT_EQ(sample.tokens, 100);
  EXPECT_EQ(sample.rows, 16);
  EXPECT_EQ(sample.cached_tokens, 84);
}

// Answers that are replayed without errors are accepted whole, wrong ones not at all.
TEST_F(BenchRunnerTest, SpeculateReplaysAnswersWithTheAskedAcceptance) {
  BenchRun run{.test = BenchTest::speculate,
               .prompt_tokens = 20,
               .output_tokens = 41,
               .sequences = 3,
               .drafts = {.acceptance = 1, .lengths = {1, 4}}};
  const BenchSample right = make(run);
  EXPECT_EQ(right.tokens, 3 * 40);
  EXPECT_EQ(right.steps, 40);
  EXPECT_EQ(right.kv_bytes, 3 * (21 + 60) * 40 / 2 * kKvBytes);
  ASSERT_EQ(right.drafted.size(), 3);
  EXPECT_EQ(right.drafted[0].steps, 20);
  EXPECT_EQ(right.drafted[1].steps, 8);
  EXPECT_EQ(right.drafted[1].tokens, 3 * 40);
  EXPECT_EQ(right.drafted[1].counters.drafted_tokens, 3 * 32);
  EXPECT_EQ(right.drafted[1].counters.accepted_tokens, 3 * 32);
  EXPECT_EQ(right.drafted[1].counters.accepted_at[3], 3 * 8);
  EXPECT_TRUE(right.drafted[2].limits.adapts);
  run.drafts.acceptance = 0;
  const BenchSample wrong = make(run);
  EXPECT_EQ(wrong.drafted[1].steps, 40);
  EXPECT_EQ(wrong.drafted[1].counters.accepted_tokens, 0);
  EXPECT_GT(wrong.drafted[1].counters.drafted_tokens, 3 * 100);
}

TEST_F(BenchRunnerTest, RepetitionsOfSpeculateErrAtOtherTokens) {
  const BenchRun run{.test = BenchTest::speculate,
                     .prompt_tokens = 20,
                     .output_tokens = 150,
                     .drafts = {.acceptance = 0.5, .lengths = {4}}};
  runner_->prepare(run);
  const SpeculationCounters first = runner_->run(run).drafted[0].counters;
  const SpeculationCounters second = runner_->run(run).drafted[0].counters;
  EXPECT_NE(first.accepted_at, second.accepted_at);
  EXPECT_LT(first.accepted_at[1], first.accepted_at[0]);
  // Half of the drafts' first tokens.
  EXPECT_NEAR(static_cast<double>(first.accepted_at[0]) / static_cast<double>(first.drafts), 0.5,
              0.2);
}

TEST_F(BenchRunnerTest, MemoryLeavesTheEngineIdle) {
  const BenchSample sample = make({.test = BenchTest::memory, .prompt_tokens = 16, .sequences = 8});
  EXPECT_EQ(sample.seconds, 0);
  EXPECT_EQ(sample.figures.back().first, "kv_bytes_per_token");
  EXPECT_EQ(sample.figures.back().second, kKvBytes);
  EXPECT_EQ(model_->engine->num_running() + model_->engine->num_waiting(), 0);
}

}  // namespace
}  // namespace paceline
