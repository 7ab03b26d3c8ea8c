#include "weights/published_quantisation.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace paceline {
namespace {

// Of a model with these small files.
std::optional<PublishedQuantisation> published_in(const std::string& config,
                                                  const std::string& name = {},
                                                  const std::string& text = {}) {
  return PublishedQuantisation::find(
      name.empty() ? ModelFiles("m", {{"config.json", [=] { return config; }}})
                   : ModelFiles("m", {{"config.json", [=] { return config; }},
                                      {name, [=] { return text; }}}));
}

std::string of_method(const std::string& method, const std::string& more = {}) {
  return R"({"quantization_config": {"quant_method": ")" + method + "\"" + more + "}}";
}

TEST(PublishedQuantisation, IsAbsentFromPlainAndFromAffineConfigs) {
  EXPECT_FALSE(published_in("{}"));
  EXPECT_FALSE(published_in(R"({"quantization_config": {"bits": 4, "group_size": 64}})"));
  EXPECT_FALSE(published_in(of_method("mxfp4")));
  EXPECT_FALSE(published_in(R"({"quantization": {"bits": 4}, "quantization_config": {
      "quant_method": "quark"}})"));
  EXPECT_FALSE(
      published_in("{}", "hf_quant_config.json",
                   R"({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}})"));
  EXPECT_FALSE(published_in(R"({"quantization": {"bits": 4}})", "quantize_config.json", "{}"));
}

TEST(PublishedQuantisation, MethodsAreReadFromTheConfigAndFromTheFilesOfTools) {
  for (const char* const method : {"gptq", "awq", "bitsandbytes", "fp8", "compressed-tensors",
                                   "hqq", "auto-round", "modelopt", "fbgemm_fp8", "torchao"}) {
    const auto found = published_in(of_method(method));
    ASSERT_TRUE(found) << method;
    EXPECT_EQ(found->method, method);
    EXPECT_EQ(found->words_are_awq, found->method == "awq");
  }
  EXPECT_EQ(published_in("{}", "quantize_config.json", R"({"bits": 3})")->method, "gptq");
  EXPECT_EQ(published_in("{}", "quant_config.json", R"({"w_bit": 4})")->method, "awq");
  EXPECT_EQ(published_in("{}", "hf_quant_config.json", R"({"quantization": {"quant_algo": "FP8"}})")
                ->method,
            "modelopt");
  EXPECT_EQ(published_in(R"({"quantization": {"bits": 4, "mode": "mxfp4"}})")->method, "mlx");
  EXPECT_EQ(published_in(R"({"quantization": {"bits": 4, "a": {"mode": "nvfp4"}}})")->method,
            "mlx");
}

TEST(PublishedQuantisation, SettingsAreRead) {
  EXPECT_EQ(published_in(of_method("gptq"))->gptq_zero_shift, 1);
  EXPECT_EQ(published_in(of_method("gptq", R"(, "checkpoint_format": "gptq_v2")"))->gptq_zero_shift,
            0);
  EXPECT_TRUE(published_in(of_method("auto-round", R"(, "packing_format": "auto_round:auto_awq")"))
                  ->words_are_awq);
  EXPECT_EQ(published_in(of_method("fp8", R"(, "weight_block_size": [128, 64])"))->block,
            (Extents{128, 64}));
  const auto shift_of = [](const std::string& key, const std::string& packing) {
    return published_in(of_method("auto-round", R"(, ")" + key + R"(": ")" + packing + "\""))
        ->gptq_zero_shift;
  };
  EXPECT_EQ(shift_of("packing_format", "auto_round:auto_gptq"), 1);
  EXPECT_EQ(shift_of("packing_format", "auto_round"), 0);
  EXPECT_EQ(shift_of("packing_format", "auto_round:gptqmodel"), 0);
  EXPECT_EQ(shift_of("backend", "auto_round:exllamav2"), 0);
  EXPECT_EQ(shift_of("backend", "auto"), 1);
  EXPECT_EQ(published_in(of_method("auto-round"))->gptq_zero_shift, 1);
  const auto groups = published_in(of_method("compressed-tensors", R"(, "config_groups": {
      "a": {"weights": {"num_bits": 4}}, "b": {"weights": {"num_bits": 8}}, "c": {"weights": null}})"));
  EXPECT_EQ(groups->bits, (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(published_in(of_method("gptq"))->dtype, DType::bf16);
  EXPECT_EQ(published_in(R"({"torch_dtype": "float16", "quantization_config": {
      "quant_method": "gptq"}})")
                ->dtype,
            DType::f16);
  EXPECT_EQ(published_in(R"({"text_config": {"dtype": "float32"}, "quantization_config": {
      "quant_method": "gptq"}})")
                ->dtype,
            DType::f32);
}

TEST(PublishedQuantisation, OtherMethodsAreRefusedByName) {
  const auto refused = [](const std::string& method, const std::string& config,
                          const std::string& name = {}, const std::string& text = {}) {
    expect_error(ErrorCode::unsupported, {"weights quantised by \"" + method + "\"", "--quantize"},
                 [&] { published_in(config, name, text); });
  };
  for (const std::string method : {"quark", "vptq", "bitnet", "eetq"}) {
    refused(method, of_method(method));
  }
  refused("marlin", "{}", "quantize_config.json", R"({"bits": 4, "quant_method": "marlin"})");
  refused("W4A8_AWQ", "{}", "hf_quant_config.json",
          R"({"quantization": {"quant_algo": "W4A8_AWQ"}})");
  expect_error(ErrorCode::unsupported, {"quantization_config", "\"marlin\"", "gptq_v2"},
               [] { published_in(of_method("gptq", R"(, "checkpoint_format": "marlin")")); });
  expect_error(ErrorCode::unsupported, {"\"auto_round:mlx\"", "auto_gptq"}, [] {
    published_in(of_method("auto-round", R"(, "packing_format": "auto_round:mlx")"));
  });
  expect_error(ErrorCode::unsupported, {"transform_config", "transforms of inputs"}, [] {
    published_in(of_method("compressed-tensors", R"(, "transform_config": {"config_groups": {
        "u": {"type": "hadamard"}}})"));
  });
  EXPECT_TRUE(published_in(of_method("compressed-tensors", R"(, "transform_config": {})")));
  EXPECT_TRUE(published_in(of_method("awq", R"(, "version": "GEMM")")));
  expect_error(ErrorCode::unsupported, {"\"gemv_fast\""},
               [] { published_in(of_method("awq", R"(, "version": "GEMV_FAST")")); });
  expect_error(ErrorCode::unsupported, {"\"llm-awq\""},
               [] { published_in(of_method("awq", R"(, "backend": "llm-awq")")); });
  expect_error(ErrorCode::unsupported, {"\"gemv\""},
               [] { published_in(of_method("awq", R"(, "version": "gemv")")); });
}

TEST(PublishedQuantisation, MalformedFilesAreNamed) {
  expect_error(ErrorCode::invalid, {"quantization_config.quant_method: found 4, expected a string"},
               [] { published_in(R"({"quantization_config": {"quant_method": 4}})"); });
  expect_error(ErrorCode::invalid, {"quantization.quant_algo: found 4, expected a string"}, [] {
    published_in("{}", "hf_quant_config.json", R"({"quantization": {"quant_algo": 4}})");
  });
  expect_error(ErrorCode::invalid, {"weight_block_size", "two sizes"},
               [] { published_in(of_method("fp8", R"(, "weight_block_size": [128])")); });
  expect_error(ErrorCode::invalid, {"weight_block_size", "at least 1"},
               [] { published_in(of_method("fp8", R"(, "weight_block_size": [128, 0])")); });
  expect_error(ErrorCode::invalid, {"bits: found 4.5, expected an integer"},
               [] { published_in(of_method("gptq", R"(, "bits": 4.5)")); });
}

}  // namespace
}  // namespace paceline
