#include "weights/mlx_recipe.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline {
namespace {

std::vector<int64_t> high_layers(const MlxRecipe& recipe, int64_t num_layers,
                                 const std::string& part) {
  std::vector<int64_t> high;
  for (int64_t i = 0; i < num_layers; ++i) {
    const std::string module = "model.layers." + std::to_string(i) + "." + part;
    if (recipe.format_of(module).bits != recipe.usual_format().bits) high.push_back(i);
  }
  return high;
}

// By the predicate of mlx_lm 0.32.2 (mixed_quant_predicate_builder).
TEST(MlxRecipe, MixedOnesGiveTheModulesOfMlxLmMoreBits) {
  const auto recipe = MlxRecipe::mixed("mixed_3_6", 64, 16);
  ASSERT_TRUE(recipe);
  EXPECT_EQ(recipe->usual_format(), (AffineFormat{3, 64}));
  EXPECT_EQ(recipe->format_of("lm_head"), (AffineFormat{6, 64}));
  EXPECT_EQ(recipe->format_of("model.embed_tokens"), (AffineFormat{3, 64}));
  const std::vector<int64_t> expected{0, 1, 4, 7, 10, 13, 14, 15};
  EXPECT_EQ(high_layers(*recipe, 16, "mlp.down_proj"), expected);
  EXPECT_EQ(high_layers(*recipe, 16, "self_attn.v_proj"), expected);
  EXPECT_TRUE(high_layers(*recipe, 16, "mlp.up_proj").empty());
  EXPECT_TRUE(high_layers(*recipe, 16, "self_attn.o_proj").empty());
  EXPECT_EQ(high_layers(*MlxRecipe::mixed("mixed_2_6", 64, 3), 3, "mlp.down_proj"),
            (std::vector<int64_t>{2}));
}

TEST(MlxRecipe, HaveNames) {
  struct Case {
    std::string name;
    int low, high;
  };
  for (const auto& [name, low, high] : std::vector<Case>{
           {"mixed_2_6", 2, 6}, {"mixed_3_4", 3, 4}, {"mixed_3_6", 3, 6}, {"mixed_4_6", 4, 6}}) {
    const auto recipe = MlxRecipe::mixed(name, 32, 8);
    ASSERT_TRUE(recipe) << name;
    EXPECT_EQ(recipe->usual_format(), (AffineFormat{low, 32}));
    EXPECT_EQ(recipe->format_of("lm_head"), (AffineFormat{high, 32}));
  }
  EXPECT_FALSE(MlxRecipe::mixed("mixed_9_9", 32, 8));
}

TEST(MlxRecipe, AUniformOneIsTheSameEverywhere) {
  const auto recipe = MlxRecipe::uniform({.bits = 5, .group_size = 128});
  for (const char* module : {"lm_head", "model.layers.0.mlp.down_proj", "model.embed_tokens"}) {
    EXPECT_EQ(recipe.format_of(module), (AffineFormat{5, 128}));
  }
}

TEST(MlxRecipe, LayersAreCountedByTheirNames) {
  const auto count = [](const std::vector<std::string>& names) {
    std::vector<CheckpointEntry> entries;
    for (const std::string& name : names) entries.push_back({name, DType::f32, {}});
    return count_layers(entries);
  };
  EXPECT_EQ(count({"model.layers.0.x", "model.layers.11.mlp.down_proj.weight", "norm.weight"}), 12);
  EXPECT_EQ(count({"norm.weight", "layers.x.y", "layers.-3.y", "layers.7"}), 0);
  EXPECT_EQ(count({"layers.99999999999999999999.y", "layers.9999999999.y"}), 0);
}

}  // namespace
}  // namespace paceline
