// mlx-lm's directories: what is read of them, and what is refused by name.
#include "adapters/mlx_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/adapters/written_adapters.h"

namespace paceline {
namespace {

using testing::ElementsAre;

// A and B of a module, transposed as mlx-lm stores them.
std::vector<FileTensor> mlx_pair(const std::string& module, MatrixSize size, uint64_t rank = 2) {
  return {written_matrix(module + ".lora_a", static_cast<uint64_t>(size.in), rank),
          written_matrix(module + ".lora_b", rank, static_cast<uint64_t>(size.out), 100)};
}

std::vector<FileTensor> mlx_queries() {
  return joined(mlx_pair(kQuery, {8, 4}), mlx_pair("model.layers.1.self_attn.q_proj", {8, 4}));
}

// `fields` ends with a comma.
std::string mlx_config(std::string_view fields, std::string_view parameters = "") {
  return "{" + std::string(fields) + R"("lora_parameters": {)" + std::string(parameters) +
         R"("rank": 2, "scale": 10.0}})";
}

class MlxDirectory : public testing::Test {
 protected:
  Adapter read(std::string_view config, const std::vector<FileTensor>& tensors) {
    directory_.write("adapter_config.json", config);
    directory_.write("adapters.safetensors", safetensors_file(tensors));
    return read_adapter(directory_.path(), base_, memory_);
  }
  void expect_refused(ErrorCode code, const std::vector<std::string>& parts,
                      std::string_view config, const std::vector<FileTensor>& tensors) {
    expect_error(code, parts, [&] { read(config, tensors); });
  }

  TestDirectory directory_;
  Memory memory_;
  AdapterBase base_ = small_base();
};

TEST_F(MlxDirectory, ReadsTransposedPairsAndTheScaleItself) {
  const Adapter adapter =
      read(mlx_config(R"("fine_tune_type": "lora", "num_layers": -1, "model": "some/model",)"),
           mlx_queries());
  ASSERT_EQ(adapter.pairs().size(), 2u);
  const LoraPair& pair = adapter.pairs()[0];
  EXPECT_EQ(pair.scale, 10);
  EXPECT_EQ(pair.alpha, 20);
  EXPECT_EQ(pair.a.view.shape(), (Extents{2, 4}));
  EXPECT_THAT(floats_of(pair.a.view), ElementsAre(1, 3, 5, 7, 2, 4, 6, 8));
  EXPECT_EQ(pair.b.view.shape(), (Extents{8, 2}));
  EXPECT_EQ(floats_of(pair.b.view)[1], 108);
  EXPECT_EQ(adapter.base_name(), "some/model");
}

TEST_F(MlxDirectory, KeysAndLayersChooseTheModules) {
  const std::vector<std::string> covering = {
      mlx_config(""), mlx_config(R"("num_layers": 2,)", R"("keys": ["self_attn.q_proj"],)"),
      mlx_config(R"("num_layers": 16,)", R"("keys": null,)"),
      mlx_config(R"("num_layers": 1,)", R"("keys": ["self_attn.q_proj",
                 "model.layers.0.self_attn.q_proj"],)"),
      mlx_config(R"("num_layers": 0,)")};
  for (const std::string& config : covering) {
    SCOPED_TRACE(config);
    EXPECT_EQ(read(config, mlx_queries()).pairs().size(), 2u);
  }
  const std::vector<std::string> missing = {
      mlx_config(R"("num_layers": 1,)"),
      mlx_config("", R"("keys": ["self_attn.k_proj", "q_proj"],)"),
      mlx_config("", R"("keys": [],)")};
  for (const std::string& config : missing) {
    SCOPED_TRACE(config);
    expect_refused(ErrorCode::corrupt, {"adapters.safetensors: tensor", "outside keys"}, config,
                   mlx_queries());
  }
}

TEST_F(MlxDirectory, OtherMethodsAndTensorsAreRefusedByName) {
  expect_refused(ErrorCode::unsupported, {"fine_tune_type", "\"dora\"", "\"lora\""},
                 mlx_config(R"("fine_tune_type": "dora",)"), mlx_queries());
  expect_refused(ErrorCode::unsupported, {"fine_tune_type", "\"full\""},
                 mlx_config(R"("fine_tune_type": "full",)"), mlx_queries());
  expect_refused(ErrorCode::unsupported, {kQuery + ".m", "DoRA"}, mlx_config(""),
                 joined(mlx_queries(), {written_matrix(kQuery + ".m", 1, 8)}));
  expect_refused(ErrorCode::unsupported, {"model.norm.weight", "whole weights"}, mlx_config(""),
                 joined(mlx_queries(), {written_matrix("model.norm.weight", 1, 4)}));
}

TEST_F(MlxDirectory, MalformedConfigsAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{}", "lora_parameters"},
      {R"({"lora_parameters": {"scale": 1}})", "lora_parameters.rank"},
      {R"({"lora_parameters": {"rank": 2, "alpha": 1}})", "lora_parameters.scale"},
      {R"({"lora_parameters": {"rank": 0, "scale": 1}})", "from 1 to 1024"},
      {R"({"lora_parameters": {"rank": 2, "scale": 1e39}})", "lora_parameters.scale"},
      {R"({"lora_parameters": {"rank": 2, "scale": 1, "keys": "q"}})", "lora_parameters.keys"},
      {R"({"num_layers": "all", "lora_parameters": {"rank": 2, "scale": 1}})", "num_layers"}};
  for (const auto& [config, part] : cases) {
    SCOPED_TRACE(config);
    expect_refused(ErrorCode::invalid, {"adapter_config.json: ", part}, config, mlx_queries());
  }
}

TEST_F(MlxDirectory, PairsThatDontFitAreRefused) {
  expect_refused(ErrorCode::corrupt, {"rank 3", "says 2"}, mlx_config(""),
                 mlx_pair(kQuery, {8, 4}, 3));
  expect_refused(ErrorCode::invalid, {"lora_a", "[5, 2]", "expected [4, 2]"}, mlx_config(""),
                 mlx_pair(kQuery, {8, 5}));
  expect_refused(ErrorCode::corrupt, {"rank 0"}, mlx_config(""), mlx_pair(kQuery, {8, 4}, 0));
  expect_refused(ErrorCode::corrupt, {"no partner"}, mlx_config(""), {mlx_pair(kQuery, {8, 4})[0]});
  expect_refused(ErrorCode::not_found, {"q_prj", "did you mean"}, mlx_config(""),
                 mlx_pair("model.layers.0.self_attn.q_prj", {8, 4}));
}

}  // namespace
}  // namespace paceline
