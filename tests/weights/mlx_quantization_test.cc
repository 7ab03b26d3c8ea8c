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

TEST(MlxQuantization, OtherMethodsAreRefusedByName) {
  const auto check = [](const std::string& config) {
    check_quantization_method(ModelFiles("m", {{"config.json", [=] { return config; }}}));
  };
  for (const char* const method :
       {"gptq", "awq", "bitsandbytes", "fp8", "compressed-tensors", "nvfp4"}) {
    SCOPED_TRACE(method);
    const std::string fields = R"("quantization_config": {"quant_method": ")" + std::string(method);
    expect_error(ErrorCode::unsupported,
                 {"config.json: quantization_config.quant_method", method, "--quantize", "GGUF"},
                 [&] { check("{" + fields + "\"}}"); });
    EXPECT_NO_THROW(check(R"({"quantization": {"bits": 4}, )" + fields + "\"}}"));
  }
  EXPECT_NO_THROW(check("{}"));
  EXPECT_NO_THROW(check(R"({"quantization_config": {"bits": 4, "group_size": 64}})"));
  expect_error(ErrorCode::invalid, {"quantization_config.quant_method: found 4, expected a string"},
               [&] { check(R"({"quantization_config": {"quant_method": 4}})"); });
}

TEST(MlxQuantization, OtherMethodsAreRefusedByTheFilesOfTheirTools) {
  const auto check = [](const std::string& name, const std::string& text,
                        const std::string& config = "{}") {
    check_quantization_method(
        ModelFiles("m", {{"config.json", [=] { return config; }}, {name, [=] { return text; }}}));
  };
  const auto expect_method = [&](const std::string& name, const std::string& text,
                                 const std::string& method) {
    expect_error(ErrorCode::unsupported,
                 {name, "weights quantised by \"" + method + "\"", "--quantize"},
                 [&] { check(name, text); });
  };
  expect_method("quantize_config.json", R"({"bits": 4, "group_size": 128})", "gptq");
  expect_method("quantize_config.json", R"({"bits": 4, "quant_method": "marlin"})", "marlin");
  expect_method("quant_config.json", R"({"w_bit": 4, "version": "GEMM"})", "awq");
  expect_method("hf_quant_config.json", R"({"quantization": {"quant_algo": "NVFP4"}})", "NVFP4");
  EXPECT_NO_THROW(check("hf_quant_config.json",
                        R"({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}})"));
  EXPECT_NO_THROW(check("quantize_config.json", "{}", R"({"quantization": {"bits": 4}})"));
  expect_error(ErrorCode::invalid, {"quantization.quant_algo: found 4, expected a string"},
               [&] { check("hf_quant_config.json", R"({"quantization": {"quant_algo": 4}})"); });
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
  refused(unsupported, R"("group_size": 32, "bits": 4, "mode": "mxfp4")",
          ".mode: \"mxfp4\" can't be read (affine can)");
  refused(unsupported, R"("group_size": 32, "bits": 4, "a.b": {"mode": "nvfp4"})",
          "quantization[\"a.b\"].mode: \"nvfp4\"");
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
