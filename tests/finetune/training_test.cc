// Training as programs use it: plans, steps, stops, and what it leaves.
#include "paceline/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stop_token>

#include "paceline/llm.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"

namespace paceline::testing {
namespace {

namespace fs = std::filesystem;

class TrainingTest : public ::testing::Test {
 protected:
  TrainingTest() {
    std::ofstream file(directory_ / "train.jsonl");
    for (const char* const name : {"Ada", "Bea", "Cleo", "Dora", "Eve", "Flo"}) {
      file << R"({"prompt": "Who is it?", "completion": " It is )" << name << ".\"}\n";
    }
  }

  TrainOptions options(const std::string& run = "run") const {
    return {.model = {.model = source_path("models/paceline-draft-1m"), .num_threads = 1},
            .output = directory_ / run,
            .data = directory_ / "train.jsonl",
            .max_seq_length = 64,
            .packing = false,
            .rank = 2,
            .dropout = 0.1,
            .num_steps = 6,
            .batch_size = 2,
            .learning_rate = 1e-2,
            .steps_per_report = 2,
            .steps_per_evaluation = 0,
            .steps_per_checkpoint = 2,
            .seed = 3};
  }

  static std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string adapter_of(const std::string& run) const {
    return content(directory_ / run / "adapter_model.safetensors");
  }

  TestDirectory temporary_;
  fs::path directory_ = temporary_.path();
};

TEST_F(TrainingTest, TheAdapterOfARunIsServedByAModelThatRuns) {
  Training training = Training::open(options());
  const TrainingPlan& plan = training.plan();
  EXPECT_EQ(plan.num_examples, 6);
  EXPECT_EQ(plan.num_steps, 6);
  EXPECT_EQ(plan.num_validation_examples, 1);
  EXPECT_GT(plan.num_counted_tokens, 0);
  EXPECT_GT(plan.num_modules, 0);
  EXPECT_EQ(plan.data_format, "prompts and completions");
  EXPECT_FALSE(fs::exists(directory_ / "run"));
  std::vector<TrainingPoint> points;
  const TrainingOutcome outcome =
      training.run([&](const TrainingPoint& point) { points.push_back(point); });
  EXPECT_EQ(outcome.end, TrainingOutcome::End::finished);
  EXPECT_EQ(outcome.num_steps, 6);
  ASSERT_GE(points.size(), 3u);
  EXPECT_LT(*points.back().loss, *points[points.size() - 3].loss);

  LLM llm = LLM::load({.model = options().model.model, .enable_lora = true, .num_threads = 1});
  llm.load_lora({.name = "names", .path = directory_ / "run"});
  const GenerateOptions greedy{.max_tokens = 8, .temperature = 0, .logprobs = 0};
  GenerateOptions adapted = greedy;
  adapted.lora = "names";
  const Completion plain = llm.generate("Who is it?", greedy).completion();
  const Completion trained = llm.generate("Who is it?", adapted).completion();
  EXPECT_NE(plain.logprobs[0].logprob, trained.logprobs[0].logprob);
}

TEST_F(TrainingTest, AStoppedRunGoesOnToTheBytesOfAnUnbrokenOne) {
  EXPECT_EQ(Training::open(options("unbroken")).run().num_steps, 6);
  std::stop_source stop;
  const TrainingOutcome stopped = Training::open(options()).run(
      [&](const TrainingPoint& point) {
        if (point.step == 2) stop.request_stop();
      },
      stop.get_token());
  EXPECT_EQ(stopped.end, TrainingOutcome::End::stopped);
  EXPECT_LT(stopped.saved_step, 6);
  expect_error(ErrorCode::invalid, {"has files already"},
               [&] { Training::open(options()).begin(); });
  TrainOptions resumed = options();
  resumed.resume = true;
  Training rest = Training::open(resumed);
  EXPECT_EQ(rest.begin(), stopped.saved_step);
  EXPECT_EQ(rest.run().num_steps, 6);
  EXPECT_FALSE(adapter_of("run").empty());
  EXPECT_EQ(adapter_of("run"), adapter_of("unbroken"));
}

TEST_F(TrainingTest, AResumedRunMustBeTheSame) {
  TrainOptions shorter = options();
  shorter.num_steps = 2;
  Training::open(shorter).run();
  TrainOptions other = options();
  other.resume = true;
  other.rank = 3;
  Training training = Training::open(other);
  expect_error(ErrorCode::invalid, {"rank"}, [&] { training.begin(); });
  // It takes no step from the beginning either.
  expect_error(ErrorCode::invalid, {"rank"}, [&] { training.run(); });
}

TEST_F(TrainingTest, AMeasuredStepWritesNothingAndEndsTheRun) {
  TrainOptions asked = options();
  asked.output.clear();
  Training training = Training::open(asked);
  const StepCost cost = training.measure_step();
  EXPECT_GT(cost.loss, 0);
  EXPECT_GT(cost.num_tokens, 0);
  EXPECT_GT(cost.peak_bytes, 0u);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1);
  expect_error(ErrorCode::invalid, {"taken already"}, [&] { training.measure_step(); });
  expect_error(ErrorCode::invalid, {"--output"}, [&] { training.run(); });
}

TEST_F(TrainingTest, OptionsThatDontGoTogetherAreNamed) {
  const auto refuses = [&](const std::function<void(TrainOptions&)>& change,
                           const std::vector<std::string>& parts) {
    TrainOptions asked = options();
    change(asked);
    expect_error(ErrorCode::invalid, parts, [&] { Training::open(asked); });
  };
  refuses([](TrainOptions& o) { o.data.clear(); }, {"--data"});
  refuses([](TrainOptions& o) { o.model.load_format = LoadFormat::dummy; }, {"--load-format"});
  refuses([](TrainOptions& o) { o.model.backend = "mlx_lm"; }, {"--backend", "native"});
  refuses([](TrainOptions& o) { o.from_scratch = true; }, {"--from-scratch", "full"});
  refuses([](TrainOptions& o) { o.fine_tune_type = FineTuneType::full; }, {"--lora-dropout"});
  refuses([](TrainOptions& o) { o.lora_dtype = DataType::int8; }, {"--lora-dtype", "int8"});
  refuses([](TrainOptions& o) { o.adamw_learning_rate = 1; }, {"--optimizer muon"});
  refuses([](TrainOptions& o) { o.batch_size = 0; }, {"--batch-size", "found 0"});
  refuses([](TrainOptions& o) { o.learning_rate = std::nan(""); }, {"--learning-rate", "nan"});
  refuses(
      [](TrainOptions& o) {
        o.sequence_lengths = {{16, 0.5}, {8, 0.7}};
      },
      {"--sequence-lengths", "8:0.7"});
  refuses([](TrainOptions& o) { o.first_token = "no such token"; }, {"--first-token"});
}

}  // namespace
}  // namespace paceline::testing
