// Whole runs: a resumed one equals an unbroken one to the bit; what a full disk or a kill leaves.
#include "trainer/training_run.h"

#include <gtest/gtest.h>

#include <fstream>

#include "adapters/adapter_files.h"
#include "base/random.h"
#include "tests/expect_error.h"
#include "tests/models/test_model.h"
#include "tests/test_directory.h"
#include "trainer/adapter_result.h"

namespace paceline::testing {
namespace {

namespace fs = std::filesystem;

class TrainingRunTest : public ::testing::Test {
 protected:
  // A run of its own from the beginning, on a fresh model.
  struct Run {
    explicit Run(const fs::path& directory, TrainingRunOptions options = {}, double rate = 3e-3,
                 uint64_t seed = 5)
        : model(read_golden("llama_bias").directory, {.weight_dtype = DType::bf16}),
          loras(model.backend(), model.decoder(),
                {.shape_of = [](std::string_view) { return LoraShape{.rank = 4, .alpha = 8}; },
                 .seed = seed}),
          trainer(model.backend(), model.threads(), model.decoder(), loras,
                  {.learning_rate = {.peak = rate},
                   .optimizer = AdamWOptions{},
                   .max_gradient_norm = 1.0,
                   .pass = {.kv_dtype = DType::bf16}}),
          result(loras, {}, "base", model.backend().memory()),
          run(trainer, directory, options,
              {.members = {{"seed", std::to_string(seed)}, {"rank", "4"}}}, result) {}

    TestModel model;
    LoraSet loras;
    Trainer trainer;
    AdapterResult result;
    TrainingRun run;
  };

  static TrainBatch batch_of(int64_t step) {
    TrainBatch batch;
    for (uint64_t s = 0; s < 2; ++s) {
      std::vector<int32_t> tokens;
      for (uint64_t i = 0; i < 12; ++i) {
        // Few different texts, so that they can be learned.
        tokens.push_back(
            static_cast<int32_t>(20 * uniform_draw(static_cast<uint64_t>(step) % 3 + 7 * s, i)));
      }
      batch.add(tokens, std::vector<float>(11, 1.0f / 22));
    }
    return batch;
  }
  static RunData data() {
    return {.batches = [](int64_t step) { return std::vector{batch_of(step)}; },
            .validation = {batch_of(0)}};
  }

  static std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TestDirectory temporary_;
  fs::path directory_ = temporary_.path();
};

const TrainingRunOptions kShort{.num_steps = 12,
                                .steps_per_report = 2,
                                .steps_per_evaluation = 4,
                                .steps_per_checkpoint = 5,
                                .patience = 0};

TEST_F(TrainingRunTest, LearnsAndLeavesAnAdapter) {
  TrainingRunOptions options = kShort;
  options.num_steps = 60;
  Run one(directory_, options, 2e-2);
  const TrainingOutcome outcome = one.run.run(data(), [](const TrainingPoint&) {}, {});
  EXPECT_EQ(outcome.end, TrainingOutcome::End::finished);
  const auto& points = one.run.points();
  EXPECT_FALSE(points.front().loss.has_value()) << "before the first step";
  EXPECT_LT(*points.back().loss, 0.6 * *points[1].loss);
  EXPECT_LT(*points.back().validation_loss, 0.6 * *points.front().validation_loss);
  Memory memory;
  const Adapter saved = read_adapter(directory_, {}, memory);
  EXPECT_EQ(saved.digest(), trained_adapter(one.loras, "base", memory).digest());
  EXPECT_EQ(saved.max_rank(), 4);
  // The last two checkpoints are kept.
  EXPECT_TRUE(fs::exists(directory_ / "checkpoint-000055"));
  EXPECT_TRUE(fs::exists(directory_ / "checkpoint-000060"));
  EXPECT_FALSE(fs::exists(directory_ / "checkpoint-000050"));
}

TEST_F(TrainingRunTest, AResumedRunEqualsAnUnbrokenOneToTheBit) {
  const fs::path whole = directory_ / "whole", broken = directory_ / "broken";
  fs::create_directories(whole);
  fs::create_directories(broken);
  {
    Run one(whole, kShort);
    one.run.run(data(), [](const TrainingPoint&) {}, {});
  }
  for (const int64_t stop_at : {3, 7}) {
    Run one(broken, kShort);
    one.run.resume();
    std::stop_source stop;
    const RunData source{.batches =
                             [&](int64_t step) {
                               if (step + 1 == stop_at) stop.request_stop();
                               return std::vector{batch_of(step)};
                             },
                         .validation = {batch_of(0)}};
    const TrainingOutcome outcome = one.run.run(
        source, [](const TrainingPoint&) {}, stop.get_token());
    EXPECT_EQ(outcome.end, TrainingOutcome::End::stopped);
    EXPECT_EQ(outcome.saved_step, stop_at);
  }
  Run last(broken, kShort);
  EXPECT_EQ(last.run.resume(), 7);
  last.run.run(data(), [](const TrainingPoint&) {}, {});
  EXPECT_EQ(content(broken / "adapter_model.safetensors"),
            content(whole / "adapter_model.safetensors"));
  EXPECT_EQ(content(broken / "checkpoint-000012/optimizer.safetensors"),
            content(whole / "checkpoint-000012/optimizer.safetensors"));
  ASSERT_FALSE(content(whole / "adapter_model.safetensors").empty());
}

TEST_F(TrainingRunTest, AnotherRunIsNotResumed) {
  {
    Run one(directory_, kShort);
    one.run.run(data(), [](const TrainingPoint&) {}, {});
  }
  Run other(directory_, kShort, 3e-3, 6);
  expect_error(ErrorCode::invalid, {"training_state.json", "seed 5", "6"},
               [&] { other.run.resume(); });
}

TEST_F(TrainingRunTest, ADamagedCheckpointIsNamed) {
  {
    Run one(directory_, kShort);
    one.run.run(data(), [](const TrainingPoint&) {}, {});
  }
  const fs::path file = directory_ / "checkpoint-000012/optimizer.safetensors";
  fs::resize_file(file, fs::file_size(file) / 2);
  Run again(directory_, kShort);
  expect_error(ErrorCode::corrupt, {"optimizer.safetensors"}, [&] { again.run.resume(); });
}

TEST_F(TrainingRunTest, LossesThatArentFiniteStopTheRunAndSayWhatIsSaved) {
  Run one(directory_, kShort, 3e38);
  try {
    one.run.run(data(), [](const TrainingPoint&) {}, {});
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::numerical);
    EXPECT_NE(std::string(error.what()).find("nothing was saved"), std::string::npos)
        << error.what();
  }
}

TEST_F(TrainingRunTest, ARunWithoutProgressRunsOutOfPatience) {
  TrainingRunOptions options = kShort;
  options.num_steps = 100;
  options.steps_per_evaluation = 1;
  options.patience = 3;
  Run one(directory_, options, 1e-30);
  const TrainingOutcome outcome = one.run.run(data(), [](const TrainingPoint&) {}, {});
  EXPECT_EQ(outcome.end, TrainingOutcome::End::out_of_patience);
  EXPECT_EQ(outcome.num_steps, 3);
  EXPECT_TRUE(fs::exists(directory_ / "adapter_model.safetensors"));
}

// What a killed process may leave: a line that is cut off, a directory that has no name yet.
TEST_F(TrainingRunTest, WhatAKillLeavesIsResumed) {
  {
    TrainingRunOptions options = kShort;
    options.num_steps = 5;
    Run one(directory_, options);
    one.run.run(data(), [](const TrainingPoint&) {}, {});
  }
  std::ofstream(directory_ / "metrics.jsonl", std::ios::app) << "{\"step\": 6, \"lo";
  fs::create_directories(directory_ / "checkpoint-000010.partial");
  fs::create_directories(directory_ / "checkpoint-10");
  Run again(directory_, kShort);
  EXPECT_EQ(again.run.resume(), 5);
  EXPECT_EQ(again.run.run(data(), [](const TrainingPoint&) {}, {}).num_steps, 12);
}

}  // namespace
}  // namespace paceline::testing
