#include "weights/mlx_quantization.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace paceline {
namespace {

std::optional<MlxQuantization> found_in(std::string_view config) {
  return MlxQuantization::find(parse_json(config, "config.json"), "config.json");
}

TEST(MlxQuantization, IsAbsentFromPlainConfigs) {
  EXPECT_FALSE(found_in(R"({"model_type": "llama"})"));
  EXPECT_FALSE(found_in(R"({"quantization": null})"));
  EXPECT_FALSE(found_in(R"({"quantization_config": {"quant_method": "gptq", "bits": 4}})"));
}

TEST(MlxQuantization, ModulesHaveOverrides) {
  const auto found = found_in(R"({"quantization": {"group_size": 64, "bits": 4, "mode": "affine",
      "model.layers.0.mlp.down_proj": {"group_size": 128, "bits": 6}, "lm_head": {"bits": 8},
      "model.embed_tokens": false, "model.layers.1.mlp.up_proj": true, "other": 3}})");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->format_of("model.layers.9.mlp.down_proj"), (AffineFormat{4, 64}));
  EXPECT_EQ(found->format_of("model.layers.0.mlp.down_proj"), (AffineFormat{6, 128}));
  EXPECT_EQ(found->format_of("lm_head"), (AffineFormat{8, 64}));
  EXPECT_EQ(found->format_of("model.layers.1.mlp.up_proj"), (AffineFormat{4, 64}));
  EXPECT_EQ(found->format_of("model.embed_tokens"), std::nullopt);
}

// Their formats are in the shapes of the tensors.
TEST(MlxQuantization, ModulesOfOtherModesAreNotAffine) {
  const auto found = found_in(R"({"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4",
      "lm_head": {"group_size": 64, "bits": 8, "mode": "affine"}, "model.a": true}})");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->format_of("model.b"), std::nullopt);
  EXPECT_EQ(found->format_of("model.a"), std::nullopt);
  EXPECT_EQ(found->format_of("lm_head"), (AffineFormat{8, 64}));
}

TEST(MlxQuantization, EitherKeyWillDo) {
  const auto found = found_in(R"({"quantization_config": {"group_size": 32, "bits": 3}})");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->format_of("x"), (AffineFormat{3, 32}));
}

TEST(MlxQuantization, OtherModesAndSizesAreRefusedByName) {
  const auto refused = [](ErrorCode code, std::string_view fields, const std::string& message) {
    expect_error(code, {"config.json: quantization", message},
                 [&] { found_in("{\"quantization\": {" + std::string(fields) + "}}"); });
  };
  const auto unsupported = ErrorCode::unsupported;
  refused(unsupported, R"("group_size": 32, "bits": 4, "mode": "mxfp6")",
          ".mode: \"mxfp6\" can't be read (affine, mxfp4, mxfp8 and nvfp4 can)");
  refused(unsupported, R"("group_size": 32, "bits": 4, "a.b": {"mode": "fp4"})",
          "quantization[\"a.b\"].mode: \"fp4\"");
  refused(unsupported, R"("group_size": 32, "bits": 7)",
          ".bits: found 7, expected 2, 3, 4, 5, 6 or 8");
  refused(unsupported, R"("group_size": 16, "bits": 4)",
          ".group_size: found 16, expected 32, 64 or 128");
  refused(unsupported, R"("group_size": 32, "bits": 4, "a": {"bits": 1})",
          "[\"a\"].bits: found 1, expected");
  refused(ErrorCode::invalid, R"("group_size": 32)", "quantization.bits: missing");
  refused(ErrorCode::invalid, R"("bits": 4)", "quantization.group_size: missing");
  refused(ErrorCode::invalid, R"("bits": "4", "group_size": 32)",
          ".bits: found \"4\", expected an integer");
  expect_error(ErrorCode::invalid, {"quantization: found 4, expected an object"},
               [] { found_in(R"({"quantization": 4})"); });
}

}  // namespace
}  // namespace paceline
