// LoRA trained on the emulated CUDA backend: losses and gradients are near the CPU's, and a run
// that one began is continued by the other.
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/expect_error.h"
#include "tests/models/test_model.h"
#include "tests/test_directory.h"
#include "tests/test_scale.h"
#include "train/decoder_pass.h"
#include "train/lora_set.h"
#include "trainer/adapter_result.h"
#include "trainer/training_run.h"

namespace paceline::testing {
namespace {

LoraOptions rank_3(DType dtype) {
  return {.shape_of = [](std::string_view) { return LoraShape{.rank = 3, .alpha = 6}; },
          .dtype = dtype,
          .seed = 11};
}

RunOptions run_on(BackendKind backend, DType dtype) {
  return {.backend = backend, .num_threads = 2, .weight_dtype = dtype, .kv_dtype = dtype};
}

// A model with LoRA on every module, whose matrices B aren't zero.
struct Trained {
  Trained(const std::string& name, BackendKind backend, DType dtype)
      : golden(read_golden(name)),
        model(golden.directory, run_on(backend, dtype)),
        loras(model.backend(), model.decoder(), rank_3(dtype)),
        options{.kv_dtype = dtype} {
    uint64_t matrix = 0;
    for (const LoraPairRef& pair : loras.pairs()) {
      const Tensor& b = pair.b->value();
      ++matrix;
      for (int64_t i = 0; i < b.num_elements(); ++i) {
        const double draw = uniform_draw(matrix, static_cast<uint64_t>(i));
        b.elements<float>()[i] = static_cast<float>(0.1 * (2 * draw - 1));
      }
    }
    loras.pack(model.backend());
  }

  // Two sequences in one batch, a part of whose tokens has a loss.
  TrainBatch batch() const {
    const std::span<const int32_t> ids = golden.prompt_ids;
    TrainBatch made;
    for (const size_t count : {size_t{18}, size_t{7}}) {
      const std::vector<int32_t> tokens(ids.end() - static_cast<std::ptrdiff_t>(count), ids.end());
      std::vector<float> weights(count - 1, 0.05f);
      weights[2] = 0.0f;
      made.add(tokens, weights);
    }
    return made;
  }

  std::vector<float> losses() {
    std::vector<float> found;
    loras.clear_gradients();
    DecoderPass(model.backend(), model.threads(), model.decoder(), loras.training(), options)
        .run(batch(), {.rate = 0.1, .seed = 3, .step = 2}, found);
    loras.complete_gradients();
    return found;
  }

  Golden golden;
  TestModel model;
  LoraSet loras;
  PassOptions options;
};

// |a - b| / |b|
double relative_distance(const Tensor& a, const Tensor& b) {
  double apart = 0, all = 0;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = double{a.elements<float>()[i]}, y = double{b.elements<float>()[i]};
    apart += (x - y) * (x - y);
    all += y * y;
  }
  return std::sqrt(apart / all);
}

class CudaTraining : public ::testing::TestWithParam<std::string> {};

// Gradients in bfloat16 round their operands elsewhere than the CPU's.
TEST_P(CudaTraining, LossesAndGradientsAreNearTheCpus) {
  struct Tolerance {
    DType dtype;
    float loss;
    double gradient;
  };
  for (const auto& [dtype, of_loss, of_gradient] :
       {Tolerance{DType::f32, 1e-5f, 1e-5}, {DType::bf16, 2e-2f, 1e-1}}) {
    SCOPED_TRACE(dtype_name(dtype));
    Trained cuda(GetParam(), BackendKind::cuda, dtype);
    Trained cpu(GetParam(), BackendKind::cpu, dtype);
    const std::vector<float> losses = cuda.losses(), expected = cpu.losses();
    ASSERT_EQ(losses.size(), expected.size());
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], expected[i], of_loss * (1 + expected[i])) << "row " << i;
    }
    const auto& parameters = cuda.loras.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_LE(relative_distance(parameters[i]->gradient(), cpu.loras.parameters()[i]->gradient()),
                of_gradient)
          << parameters[i]->path();
    }
  }
}

// With checkpoints, which compute a block again, gradients have the same bits.
TEST(CudaTrainingTest, CheckpointsChangeNoBit) {
  if (!is_full_scale()) GTEST_SKIP() << "seconds";
  Trained kept("gemma3_text_pattern2", BackendKind::cuda, DType::bf16);
  kept.options.kept_bytes = kAllActivations;
  Trained again("gemma3_text_pattern2", BackendKind::cuda, DType::bf16);
  again.options.kept_bytes = 0;
  EXPECT_EQ(kept.losses(), again.losses());
  for (size_t i = 0; i < kept.loras.parameters().size(); ++i) {
    EXPECT_EQ(relative_distance(kept.loras.parameters()[i]->gradient(),
                                again.loras.parameters()[i]->gradient()),
              0.0);
  }
}

// A run on one kind of device, in steps of one batch.
struct DeviceRun {
  DeviceRun(BackendKind backend, const std::filesystem::path& directory, int64_t num_steps)
      : trained("qwen3_tied", backend, DType::f32),
        trainer(trained.model.backend(), trained.model.threads(), trained.model.decoder(),
                trained.loras,
                {.learning_rate = {.peak = 1e-2},
                 .optimizer = AdamWOptions{},
                 .max_gradient_norm = 1.0,
                 .pass = trained.options}),
        result(trained.loras, {}, "base", memory),
        run(trainer, directory, {.num_steps = num_steps, .steps_per_report = 1},
            {.members = {{"seed", "11"}}}, result) {}

  std::vector<double> losses() {
    std::vector<double> found;
    const RunData data{.batches = [&](int64_t) { return std::vector{trained.batch()}; },
                       .validation = {}};
    run.resume();
    run.run(data, [&](const TrainingPoint& point) { found.push_back(*point.loss); }, {});
    return found;
  }

  Memory memory;
  Trained trained;
  Trainer trainer;
  AdapterResult result;
  TrainingRun run;
};

TEST(CudaTrainingTest, ARunIsContinuedOnAnotherDevice) {
  const TestDirectory whole, broken;
  const std::vector<double> expected = DeviceRun(BackendKind::cpu, whole.path(), 3).losses();
  ASSERT_EQ(expected.size(), 3u);
  std::vector<double> found;
  int64_t num_steps = 0;
  for (const BackendKind backend : {BackendKind::cuda, BackendKind::cpu, BackendKind::cuda}) {
    for (const double loss : DeviceRun(backend, broken.path(), ++num_steps).losses()) {
      found.push_back(loss);
    }
  }
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-4) << "step " << i;
  EXPECT_LT(found.back(), found.front());
}

TEST(CudaTrainingTest, WhatHasNoGradientsIsRefusedByName) {
  TestModel mixture(read_golden("olmoe_plain").directory, run_on(BackendKind::cuda, DType::f32));
  expect_error(ErrorCode::unsupported, {"mixtures of experts", "--device cpu"},
               [&] { expect_trainable(mixture.decoder(), mixture.backend()); });
  TestModel hybrid(find_golden("lfm2_tied").directory, run_on(BackendKind::cuda, DType::f32));
  expect_error(ErrorCode::unsupported, {"layers with states", "--device cpu"},
               [&] { expect_trainable(hybrid.decoder(), hybrid.backend()); });
  Trained dense("qwen3_tied", BackendKind::cuda, DType::f32);
  expect_error(ErrorCode::unsupported, {"LoRA alone", "--device cpu"},
               [&] { expect_all_trainable(dense.model.decoder(), dense.model.backend()); });
  expect_error(ErrorCode::unsupported, {"--optimizer muon", "--device cpu"}, [&] {
    Trainer(dense.model.backend(), dense.model.threads(), dense.model.decoder(), dense.loras,
            {.optimizer = MuonOptions{}});
  });
}

std::vector<std::string> trained_models() {
  if (is_full_scale()) return dense_golden_names();
  return {"gemma2_even"};
}

INSTANTIATE_TEST_SUITE_P(all, CudaTraining, ::testing::ValuesIn(trained_models()),
                         [](const auto& golden) { return golden.param; });

}  // namespace
}  // namespace paceline::testing
