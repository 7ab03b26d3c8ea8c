// Config files of mlx_lm.lora, which train reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cli/resolve.h"
#include "cli/usage_error.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// With the keys, the order and the kinds of values of mlx_lm's example.
constexpr std::string_view kExample = R"(# What is trained: a local directory.
model: "models/small"
# Whether to train.
train: true

# lora, dora or full
fine_tune_type: lora
optimizer: adamw
optimizer_config:
  adamw:
    betas: [0.9, 0.98]
    eps: 1e-6
    weight_decay: 0.05
    bias_correction: true
  muon:
    momentum: 0.9

# {train, valid, test}.jsonl are in it
data: "data/chats"
seed: 7
num_layers: 16
batch_size: 2
iters: 1000
val_batches: -1
learning_rate: 1e-4
steps_per_report: 10
steps_per_eval: 200
resume_adapter_file: null
adapter_path: "adapters"
save_every: 50
test: false
test_batches: 100
max_seq_length: 1024
grad_checkpoint: false

# Of LoRA.
lora_parameters:
  # The modules of each of the last num_layers layers.
  keys: ["self_attn.q_proj", "self_attn.v_proj"]
  rank: 8
  scale: 20.0
  dropout: 0.05
)";

class MlxConfigTest : public testing::Test {
 protected:
  std::string file(const std::string& name, std::string_view text) {
    const std::string path = temporary_.path() / name;
    std::ofstream(path) << text;
    return path;
  }
  Settings read(std::string_view text, std::vector<std::string> more = {},
                const std::string& name = "lora_config.yaml") {
    more.insert(more.end(), {"--config", file(name, text)});
    return resolve_settings(find_command("train"), more, {}).settings;
  }
  std::string error_of(std::string_view text) {
    try {
      read(text);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }

  TestDirectory temporary_;
};

TEST_F(MlxConfigTest, TheExampleIsRead) {
  const Settings settings = read(kExample);
  const TrainOptions& train = settings.train;
  EXPECT_EQ(settings.load.model, "models/small");
  EXPECT_EQ(settings.output, "adapters");
  EXPECT_EQ(train.data, "data/chats");
  EXPECT_EQ(train.fine_tune_type, FineTuneType::lora);
  EXPECT_EQ(train.optimizer, OptimizerKind::adamw);
  EXPECT_EQ(train.beta1, 0.9);
  EXPECT_EQ(train.beta2, 0.98);
  EXPECT_EQ(train.epsilon, 1e-6);
  EXPECT_EQ(train.weight_decay, 0.05);
  EXPECT_EQ(train.seed, 7u);
  EXPECT_EQ(train.num_layers, 16);
  EXPECT_EQ(train.batch_size, 2);
  EXPECT_EQ(train.num_steps, 1000);
  EXPECT_EQ(train.validation_batches, -1);
  EXPECT_EQ(train.learning_rate, 1e-4);
  EXPECT_EQ(train.steps_per_report, 10);
  EXPECT_EQ(train.steps_per_evaluation, 200);
  EXPECT_EQ(train.initial_adapter, "");
  EXPECT_EQ(train.steps_per_checkpoint, 50);
  EXPECT_EQ(train.max_seq_length, 1024);
  EXPECT_FALSE(train.checkpoints);
  EXPECT_THAT(train.target_modules, ElementsAre("q_proj", "v_proj"));
  EXPECT_EQ(train.rank, 8);
  EXPECT_EQ(train.scale, 20.0);
  EXPECT_EQ(train.dropout, 0.05);
}

// mlx_lm reads no lora_parameters either.
TEST_F(MlxConfigTest, FullFineTuningHasNoLora) {
  std::string text(kExample);
  text.replace(text.find("fine_tune_type: lora"), 20, "fine_tune_type: full");
  const TrainOptions train = read(text).train;
  EXPECT_EQ(train.fine_tune_type, FineTuneType::full);
  EXPECT_THAT(train.target_modules, testing::IsEmpty());
  EXPECT_FALSE(train.scale.has_value());
  EXPECT_EQ(train.dropout, 0);
}

TEST_F(MlxConfigTest, FlagsWinAndAnAlphaReplacesAScale) {
  const TrainOptions train = read(kExample, {"--lora-alpha", "12", "--iters", "3"}).train;
  EXPECT_EQ(train.num_steps, 3);
  EXPECT_EQ(train.alpha, 12);
  EXPECT_FALSE(train.scale.has_value());
}

TEST_F(MlxConfigTest, OptionsMayStandBesideMlxKeysInBothNotations) {
  const TrainOptions yaml = read(
                                "rank_pattern:\n  q_proj: 16\n  'layers\\.0\\..*': 2\n"
                                "alpha_pattern: {q_proj: 32}\n"
                                "lr_schedule: cosine\nwarmup_steps: 5\nmask_prompt: yes\n"
                                "resume_adapter_file: a/adapters.safetensors\n")
                                .train;
  EXPECT_THAT(yaml.rank_pattern, ElementsAre(Pair("q_proj", 16), Pair("layers\\.0\\..*", 2)));
  EXPECT_THAT(yaml.alpha_pattern, ElementsAre(Pair("q_proj", 32)));
  EXPECT_EQ(yaml.schedule, RateSchedule::cosine);
  EXPECT_EQ(yaml.loss_tokens, LossTokens::completion);
  EXPECT_EQ(yaml.initial_adapter, "a");
  const TrainOptions toml =
      read(
          "iters = 5\n[lora_parameters]\nkeys = ['mlp.up_proj']\nscale = 2.5\n"
          "[rank_pattern]\nup_proj = 3\n[train]\nbatch_size = 1\n",
          {}, "options.toml")
          .train;
  EXPECT_THAT(toml.target_modules, ElementsAre("up_proj"));
  EXPECT_EQ(toml.scale, 2.5);
  EXPECT_THAT(toml.rank_pattern, ElementsAre(Pair("up_proj", 3)));
  EXPECT_EQ(toml.batch_size, 1);
}

TEST_F(MlxConfigTest, SchedulesAreObeyed) {
  const TrainOptions cosine = read(
                                  "learning_rate: 1e-3\nlr_schedule:\n  name: cosine_decay\n"
                                  "  warmup: 100\n  warmup_init: 1e-7\n"
                                  "  arguments: [1e-5, 1000, 1e-6]\n")
                                  .train;
  EXPECT_EQ(cosine.schedule, RateSchedule::cosine);
  EXPECT_EQ(cosine.learning_rate, 1e-5) << "mlx_lm reads no learning_rate beside a schedule";
  EXPECT_EQ(cosine.warmup_steps, 100);
  EXPECT_EQ(cosine.warmup_init, 1e-7);
  EXPECT_EQ(cosine.hold_steps, 1);
  EXPECT_EQ(cosine.decay_steps, 1000);
  EXPECT_EQ(cosine.final_learning_rate, 1e-6);
  EXPECT_EQ(read("lora_parameters: {rank: 3, scale: 2}\n").train.rank, 3);
  EXPECT_EQ(read("optimizer_config: {adamw: {eps: 1e-5}}\n").train.epsilon, 1e-5);
  const TrainOptions plain =
      read("lr_schedule: {name: cosine_decay, warmup: 0, arguments: [1e-5, 1000]}\n").train;
  EXPECT_EQ(plain.warmup_steps, 0);
  EXPECT_FALSE(plain.warmup_init.has_value());
  EXPECT_EQ(plain.hold_steps, 0);
  EXPECT_EQ(plain.decay_steps, 1000);
  EXPECT_EQ(plain.final_learning_rate, 0);
  const TrainOptions linear = read(
                                  "lr_schedule:\n  arguments: [1e-4, 1e-5, 8]\n  warmup: 3\n"
                                  "  name: linear_schedule\n",
                                  {"--learning-rate", "2e-4"})
                                  .train;
  EXPECT_EQ(linear.schedule, RateSchedule::linear);
  EXPECT_EQ(linear.learning_rate, 2e-4) << "the command line wins";
  EXPECT_EQ(linear.warmup_init, 0);
  EXPECT_EQ(linear.hold_steps, 1);
  EXPECT_EQ(linear.decay_steps, 8);
  EXPECT_EQ(linear.final_learning_rate, 1e-5);
}

TEST_F(MlxConfigTest, SchedulesThatAreNotObeyedAreRefused) {
  EXPECT_THAT(error_of("lr_schedule:\n  name: exponential_decay\n  arguments: [1e-5, 0.9]"),
              HasSubstr("yaml:2: lr_schedule.name: is not supported here: found "
                        "\"exponential_decay\", expected cosine_decay or linear_schedule"));
  EXPECT_THAT(error_of("iters: 3\nlr_schedule:\n  name: cosine_decay"),
              HasSubstr("yaml:3: lr_schedule: arguments missing"));
  EXPECT_THAT(error_of("lr_schedule:\n  arguments: [1, 2]"),
              HasSubstr("yaml:2: lr_schedule: name missing"));
  EXPECT_THAT(error_of("lr_schedule:\n  name: linear_schedule\n  arguments: [1e-5, 100]"),
              HasSubstr("yaml:3: lr_schedule.arguments: found an array, expected [learning rate, "
                        "last learning rate, steps]"));
  EXPECT_THAT(error_of("lr_schedule:\n  name: cosine_decay\n  arguments: [1e-5, many]"),
              HasSubstr("yaml:3: decay_steps: found"));
  EXPECT_THAT(error_of("lr_schedule:\n  name: cosine_decay\n  arguments: [1e-5, 9]\n  warm_up: 2"),
              HasSubstr("yaml:4: lr_schedule.warm_up: is not supported here"));
}

TEST_F(MlxConfigTest, EpochsReplaceTheStepsOfAWeakerSource) {
  EXPECT_EQ(read(kExample, {"--epochs", "2.5"}).train.num_epochs, 2.5);
  const TrainOptions steps = read("epochs: 3\n", {"--iters", "7"}).train;
  EXPECT_FALSE(steps.num_epochs.has_value());
  EXPECT_EQ(steps.num_steps, 7);
  EXPECT_THAT(error_of("epochs: 3\niters: 7\n"),
              HasSubstr("--epochs and --iters exclude each other: give one of them"));
}

TEST_F(MlxConfigTest, WhatIsNotSupportedIsNamedWithItsLine) {
  EXPECT_THAT(error_of("iters: 3\ntrain: false\n"),
              HasSubstr("lora_config.yaml:2: train: is not supported here: this command trains"));
  EXPECT_THAT(error_of("test: true"), HasSubstr("yaml:1: test: is not supported here"));
  EXPECT_THAT(error_of("fine_tune_type: dora"), HasSubstr("found \"dora\", expected one of lora"));
  EXPECT_THAT(error_of("optimizer: adam"), HasSubstr("found \"adam\", expected one of adamw"));
  EXPECT_THAT(error_of("optimizer_config:\n  adamw:\n    bias_correction: false"),
              HasSubstr("yaml:3: optimizer_config.adamw.bias_correction: is not supported here"));
  EXPECT_THAT(error_of("optimizer_config:\n  adamw:\n    betas: 0.9"), HasSubstr("two numbers"));
  EXPECT_THAT(error_of("lora_parameters:\n  ranks: 4"), HasSubstr("yaml:2: lora_parameters.ranks"));
  EXPECT_THAT(error_of("lora_parameters:\n  keys: [self_attn.q_prj]"), HasSubstr("q_prj"));
  EXPECT_THAT(error_of("hf_dataset:\n  name: billsum"), HasSubstr("name files: data"));
  EXPECT_THAT(error_of("report_to: wandb"), HasSubstr("metrics.jsonl"));
  EXPECT_THAT(error_of("itres: 5"), HasSubstr("yaml:1: unknown key itres; did you mean iters?"));
  EXPECT_THAT(error_of("iters: many"), HasSubstr("yaml:1: iters: found"));
  EXPECT_THAT(error_of("iters: [1"), HasSubstr("yaml:2: did not find expected ',' or ']'"));
}

}  // namespace
}  // namespace paceline
