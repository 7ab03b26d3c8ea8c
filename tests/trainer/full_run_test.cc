// Runs of full fine-tuning: resumed to the bit, and what they leave is the model that was trained.
#include <gtest/gtest.h>

#include <fstream>

#include "base/random.h"
#include "load/model_source.h"
#include "load/trained_model_files.h"
#include "tests/models/test_model.h"
#include "train/weight_set.h"
#include "trainer/model_result.h"
#include "trainer/training_run.h"

namespace paceline::testing {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFullSteps = 9;

TrainBatch full_batch(int64_t step) {
  TrainBatch batch;
  std::vector<int32_t> tokens;
  for (uint64_t i = 0; i < 20; ++i) {
    tokens.push_back(static_cast<int32_t>(20 * uniform_draw(static_cast<uint64_t>(step) % 3, i)));
  }
  batch.add(tokens, std::vector<float>(19, 1.0f / 19));
  return batch;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A run of its own on a fresh model, with Muon.
struct FullRun {
  FullRun(const std::string& name, const fs::path& directory, int num_threads)
      : golden(find_golden(name)),
        files(ModelSource(golden.directory), LoadFormat::files),
        model(golden.directory,
              {.num_threads = num_threads, .weight_dtype = DType::bf16, .kv_dtype = DType::bf16}),
        weights(model.backend(), model.decoder()),
        trainer(model.backend(), model.threads(), model.decoder(), weights,
                {.learning_rate = {.peak = 2e-2},
                 .optimizer = MuonOptions{.adamw = {.weight_decay = 0}, .adamw_rate = 0.2},
                 .max_gradient_norm = 1.0,
                 .pass = {.kv_dtype = DType::bf16}}),
        result(weights,
               {.weight_name = [this](const std::string& one) { return files.weight_name(one); },
                .write_files =
                    [this](const fs::path& to) {
                      files.write(to, {.dtype = DType::bf16,
                                       .has_own_head = model.decoder().has_own_head()});
                    }},
               model.backend().memory()),
        run(trainer, directory,
            {.num_steps = kFullSteps,
             .steps_per_report = 3,
             .steps_per_evaluation = 0,
             .steps_per_checkpoint = 4},
            {.members = {{"seed", "1"}}}, result) {}

  Golden golden;
  TrainedModelFiles files;
  TestModel model;
  WeightSet weights;
  Trainer trainer;
  ModelResult result;
  TrainingRun run;
};

class FullRuns : public ::testing::TestWithParam<std::string> {
 protected:
  FullRuns()
      : directory_(fs::temp_directory_path() /
                   ("paceline_full_" + std::to_string(::getpid()) + "_" + GetParam())) {
    fs::create_directories(directory_ / "whole");
    fs::create_directories(directory_ / "broken");
  }
  ~FullRuns() override { fs::remove_all(directory_); }

  fs::path directory_;
};

TEST_P(FullRuns, ResumedOneEqualsAnUnbrokenOneAndLeavesTheTrainedModel) {
  const auto ignore = [](const TrainingPoint&) {};
  FullRun whole(GetParam(), directory_ / "whole", 1);
  const RunData data{.batches = [](int64_t step) { return std::vector{full_batch(step)}; },
                     .validation = {}};
  whole.run.run(data, ignore, {});
  EXPECT_LT(*whole.run.points().back().loss, 0.9 * *whole.run.points().front().loss);
  {
    FullRun first(GetParam(), directory_ / "broken", 2);
    std::stop_source stop;
    const RunData until{.batches =
                            [&](int64_t step) {
                              if (step == 4) stop.request_stop();
                              return std::vector{full_batch(step)};
                            },
                        .validation = {}};
    EXPECT_EQ(first.run.run(until, ignore, stop.get_token()).saved_step, 5);
  }
  FullRun second(GetParam(), directory_ / "broken", 2);
  EXPECT_EQ(second.run.resume(), 5);
  second.run.run(data, ignore, {});
  for (const char* const file : {"model.safetensors", "checkpoint-000009/optimizer.safetensors",
                                 "checkpoint-000009/model.safetensors"}) {
    const std::string bytes = bytes_of(directory_ / "whole" / file);
    EXPECT_FALSE(bytes.empty()) << file;
    EXPECT_EQ(bytes_of(directory_ / "broken" / file) == bytes, true) << file;
  }
  TestModel served(directory_ / "whole", {.weight_dtype = DType::bf16, .kv_dtype = DType::bf16});
  const auto& ids = whole.golden.prompt_ids;
  EXPECT_TRUE(same_bits(served.logits(ids), whole.model.logits(ids)));
}

INSTANTIATE_TEST_SUITE_P(Models, FullRuns,
                         ::testing::Values("llama_bias", "gemma3_text_pattern2", "qwen3_tied",
                                           "olmoe_plain", "qwen3_next_sparse_step", "lfm3_tied",
                                           "olmo_hybrid_no_rope", "falcon_h1_plain",
                                           "bamba_groups"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace paceline::testing
