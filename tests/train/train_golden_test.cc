// Training against PyTorch and PEFT: steps of AdamW, and whole runs from the same start.
#include <gtest/gtest.h>

#include <cmath>

#include "adapters/adapter_files.h"
#include "base/json_cursor.h"
#include "base/mapped_file.h"
#include "tests/models/test_model.h"
#include "tests/source_path.h"
#include "train/adamw.h"
#include "train/learning_rate.h"
#include "train/lora_set.h"

namespace paceline::testing {
namespace {

Json read_json(const std::string& name) {
  return parse_json(read_text_file(source_path("tests/goldens/train/" + name), 1 << 22), name);
}

TEST(AdamW, ItsStepsArePyTorchs) {
  Memory memory;
  ThreadPool threads(1);
  TrainedMatrix matrix("p", {1, 5}, DType::f32, 1.0f, memory);
  auto* const values = matrix.value().elements<float>();
  const float start[] = {1.0f, -0.5f, 3e-3f, 0.0f, -20.0f};
  std::copy(std::begin(start), std::end(start), values);
  AdamW optimizer({&matrix}, {.weight_decay = 0.01}, memory);
  for (int64_t step = 0; step < 100; ++step) {
    for (int64_t i = 0; i < 5; ++i) {
      matrix.gradient().elements<float>()[i] =
          0.5f - static_cast<float>((step * 7 + i * 13) % 32) / 32.0f;
    }
    optimizer.step(1e-2, 1.0, threads);
  }
  const Json expected = read_json("adamw.json");
  size_t i = 0;
  for (const Json& one : *expected.array()) {
    const double value = *one.number();
    EXPECT_NEAR(values[i], value, 1e-6 * std::max(1.0, std::abs(value))) << i;
    ++i;
  }
}

TEST(LearningRate, RisesAndFallsAsItsScheduleSays) {
  const LearningRate cosine{.peak = 1.0,
                            .schedule = LearningRate::Schedule::cosine,
                            .warmup_steps = 3,
                            .num_steps = 13,
                            .last = 0.1};
  EXPECT_DOUBLE_EQ(cosine.at(0), 0.25);
  EXPECT_DOUBLE_EQ(cosine.at(2), 0.75);
  EXPECT_DOUBLE_EQ(cosine.at(3), 1.0);
  EXPECT_DOUBLE_EQ(cosine.at(8), 0.55);
  EXPECT_DOUBLE_EQ(cosine.at(13), 0.1);
  EXPECT_DOUBLE_EQ(cosine.at(99), 0.1);
  LearningRate linear = cosine;
  linear.schedule = LearningRate::Schedule::linear;
  EXPECT_DOUBLE_EQ(linear.at(8), 0.55);
  EXPECT_DOUBLE_EQ(linear.at(10), 1.0 - 0.9 * 0.7);
  EXPECT_DOUBLE_EQ(LearningRate{.peak = 2.0}.at(50), 2.0);
  LearningRate wsd{.peak = 1.0,
                   .schedule = LearningRate::Schedule::wsd,
                   .warmup_steps = 3,
                   .num_steps = 20,
                   .last = 0.1,
                   .decay_fraction = 0.5};
  EXPECT_DOUBLE_EQ(wsd.at(0), 0.25);
  EXPECT_DOUBLE_EQ(wsd.at(3), 1.0);
  EXPECT_DOUBLE_EQ(wsd.at(10), 1.0);
  EXPECT_DOUBLE_EQ(wsd.at(15), 0.55);
  EXPECT_DOUBLE_EQ(wsd.at(20), 0.1);
  EXPECT_DOUBLE_EQ(wsd.at(99), 0.1);
  wsd.decay_fraction = 0;
  EXPECT_DOUBLE_EQ(wsd.at(19), 1.0);
}

class PeftRun : public ::testing::TestWithParam<std::string> {};

TEST_P(PeftRun, LossesOf50StepsAreTheSame) {
  const std::string name = GetParam();
  const Json golden = read_json(name + "/run.json");
  const JsonCursor run(golden, "run.json");
  TestModel model(read_golden(name).directory, {});
  LoraSet loras(model.backend(), model.decoder(),
                {.shape_of = [](std::string_view) { return LoraShape{.rank = 4, .alpha = 8}; },
                 .dtype = DType::f32});
  Memory memory;
  loras.load(model.backend(), read_adapter(source_path("tests/goldens/train/" + name), {}, memory));
  DecoderPass pass(model.backend(), model.threads(), model.decoder(), loras.training(),
                   {.kv_dtype = DType::f32});
  AdamW optimizer(loras.parameters(), {.weight_decay = run.at("weight_decay").number()}, memory);
  std::vector<TrainBatch> batches;
  for (const JsonCursor& step : run.at("batches").items()) {
    TrainBatch batch;
    float total = 0;
    const auto counts = step.at("counts").items();
    const auto tokens = step.at("tokens").items();
    for (size_t s = 0; s < tokens.size(); ++s) {
      std::vector<int32_t> ids;
      std::vector<float> weights;
      for (const JsonCursor& id : tokens[s].items()) {
        ids.push_back(static_cast<int32_t>(id.integer()));
      }
      for (const JsonCursor& one : counts[s].items()) {
        weights.push_back(static_cast<float>(one.integer()));
        total += weights.back();
      }
      batch.add(ids, weights);
    }
    for (float& weight : batch.weights) weight /= total;
    batches.push_back(std::move(batch));
  }
  const auto losses = run.at("losses").items();
  const auto norms = run.at("gradient_norms").items();
  for (size_t step = 0; step < losses.size(); ++step) {
    loras.clear_gradients();
    std::vector<float> rows;
    pass.run(batches[step % batches.size()], {}, rows);
    double loss = 0;
    for (const float one : rows) loss += double{one} / static_cast<double>(rows.size());
    EXPECT_NEAR(loss, losses[step].number(), 1e-4) << "step " << step;
    const double norm = gradient_norm(loras.parameters(), model.threads());
    EXPECT_NEAR(norm, norms[step].number(), 2e-3 * norm) << "step " << step;
    // torch.nn.utils.clip_grad_norm_
    optimizer.step(run.at("rate").number(), std::min(1.0, 1.0 / (norm + 1e-6)), model.threads());
    loras.pack(model.backend());
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PeftRun,
                         ::testing::Values("llama_bias", "gemma3_text_pattern2", "qwen3_tied"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace paceline::testing
