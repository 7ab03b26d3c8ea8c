#include "finetune/lora_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "load/loaded_model.h"
#include "load/model_adapter_base.h"
#include "load/model_source.h"
#include "load/stored_model.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"

namespace paceline {
namespace {

LoraShapes shapes_of(const TrainOptions& choice) {
  const ModelSource source(source_path("tests/goldens/models/qwen3_tied"));
  return lora_shapes(choice, read_model_config(source, LoadFormat::files),
                     read_adapter_base(source).peft_prefixes);
}

TEST(LoraShapes, OfTheTargetsInTheLastLayers) {
  TrainOptions choice{.target_modules = {"v_proj", "up_proj"}, .num_layers = 1};
  choice.rank = 4;
  choice.alpha = 12;
  const LoraShapes shapes = shapes_of(choice);
  ASSERT_EQ(shapes.size(), 2u);
  const std::string layer = shapes.begin()->first.substr(0, shapes.begin()->first.find(".mlp"));
  EXPECT_FALSE(shapes.contains("layers.0.mlp.up_proj"));
  EXPECT_TRUE(shapes.contains(layer + ".self_attn.v_proj"));
  EXPECT_EQ(shapes.begin()->second.rank, 4);
  EXPECT_EQ(shapes.begin()->second.alpha, 12);
  choice.num_layers = 0;
  EXPECT_TRUE(shapes_of(choice).empty());
}

// The keys of PEFT: ends of names behind a dot, whole names, regular expressions; the first counts.
TEST(LoraShapes, PatternsAreMatchedAsPeftDoes) {
  const TrainOptions choice{.rank = 4,
                            .alpha = 8,
                            .rank_pattern = {{"model.layers.1.self_attn.q_proj", 2},
                                             {"q_proj", 16},
                                             {"layers\\.[01]\\.mlp\\..*", 3},
                                             {"proj", 1}},  // no module's name has it behind a dot
                            .alpha_pattern = {{"self_attn.q_proj", 32}}};
  TrainOptions fitting = choice;
  fitting.rank_pattern.pop_back();
  const LoraShapes shapes = shapes_of(fitting);
  EXPECT_EQ(shapes.at("layers.0.self_attn.q_proj").rank, 16);
  EXPECT_EQ(shapes.at("layers.0.self_attn.q_proj").alpha, 32);
  EXPECT_EQ(shapes.at("layers.1.self_attn.q_proj").rank, 2);
  EXPECT_EQ(shapes.at("layers.1.self_attn.q_proj").alpha, 32);
  EXPECT_EQ(shapes.at("layers.1.self_attn.k_proj").rank, 4);
  EXPECT_EQ(shapes.at("layers.0.mlp.down_proj").rank, 3);
  EXPECT_EQ(shapes.at("layers.0.mlp.down_proj").alpha, 8);
  expect_error(ErrorCode::invalid, {"--rank-pattern: proj", "no module", "layers.0"},
               [&] { shapes_of(choice); });
}

TEST(LoraShapes, ExpertsAreTargetsByName) {
  const ModelSource source(source_path("tests/goldens/models/qwen2_moe_sparse_step"));
  const DecoderConfig config = read_model_config(source, LoadFormat::files);
  const auto shapes_of_targets = [&](std::vector<std::string> targets) {
    TrainOptions choice{.target_modules = std::move(targets)};
    return lora_shapes(choice, config, {});
  };
  const auto num_chosen = [](const LoraShapes& shapes) {
    return std::ranges::count_if(shapes, [](const auto& shape) {
      return shape.first.find(".experts.") != std::string::npos;
    });
  };
  const LoraShapes all = shapes_of_targets({});
  EXPECT_EQ(num_chosen(all), 0);
  EXPECT_TRUE(all.contains("layers.1.mlp.shared_expert.gate_proj"));
  EXPECT_EQ(num_chosen(shapes_of_targets({"gate_proj", "down_proj"})), 0);
  const LoraShapes some = shapes_of_targets({"experts.gate_up_proj", "q_proj"});
  const int64_t num_mixtures =
      std::ranges::count_if(config.layers, [](const auto& layer) { return layer.is_mixture; });
  EXPECT_EQ(num_chosen(some), num_mixtures * config.mixture->routing.num_experts);
  EXPECT_TRUE(some.contains("layers.1.mlp.experts.0.gate_up_proj"));
  EXPECT_EQ(some.size(), static_cast<size_t>(num_chosen(some) + config.num_layers()));
  EXPECT_EQ(shapes_of_targets({"all-linear"}).size(), all.size());
  const LoraShapes both = shapes_of_targets({"experts.down_proj", "all-linear"});
  EXPECT_EQ(both.size(), all.size() + static_cast<size_t>(num_chosen(both)));
}

TEST(LoraShapes, AScaleIsTheFactorWhateverTheRank) {
  TrainOptions choice{.rank = 4, .scale = 20.0, .rank_pattern = {{"q_proj", 16}}};
  const LoraShapes shapes = shapes_of(choice);
  EXPECT_EQ(shapes.at("layers.0.self_attn.q_proj").alpha, 320);
  EXPECT_EQ(shapes.at("layers.0.self_attn.k_proj").alpha, 80);
  choice.use_rslora = true;
  EXPECT_EQ(shapes_of(choice).at("layers.0.self_attn.q_proj").alpha, 80);
}

TEST(LoraShapes, WrongPatternsAreNamed) {
  const auto refuses = [](const TrainOptions& choice, const std::vector<std::string>& parts) {
    expect_error(ErrorCode::invalid, parts, [&] { shapes_of(choice); });
  };
  refuses({.rank_pattern = {{"q_proj", 2.5}}}, {"--rank-pattern", "2.5", "an integer"});
  refuses({.rank_pattern = {{"q_proj(", 2}}}, {"--rank-pattern: q_proj("});
  refuses({.alpha_pattern = {{"q_prj", 2}}}, {"--alpha-pattern: q_prj"});
  // A key behind another that matches the same.
  refuses({.rank_pattern = {{"q_proj", 2}, {"self_attn.q_proj", 4}}}, {"self_attn.q_proj"});
}

}  // namespace
}  // namespace paceline
