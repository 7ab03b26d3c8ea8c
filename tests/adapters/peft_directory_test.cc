// PEFT directories: what is read of them, and what is refused by name.
#include "adapters/peft_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/adapters/written_adapters.h"

namespace paceline {
namespace {

using testing::ElementsAre;

class PeftDirectory : public testing::Test {
 protected:
  Adapter read(std::string_view config, const std::vector<FileTensor>& tensors) {
    write_peft(directory_, config, tensors);
    return read_adapter(directory_.path(), base_, memory_);
  }
  void expect_refused(ErrorCode code, std::vector<std::string> parts, std::string_view config,
                      const std::vector<FileTensor>& tensors) {
    expect_error(code, parts, [&] { read(config, tensors); });
    EXPECT_EQ(memory_.stats().active_bytes, 0u);
  }

  TestDirectory directory_;
  Memory memory_;
  AdapterBase base_ = small_base();
};

TEST_F(PeftDirectory, ReadsPairsAndScale) {
  const Adapter adapter = read(kPeftConfig, query_pairs());
  ASSERT_EQ(adapter.pairs().size(), 2u);
  const LoraPair& pair = adapter.pairs()[0];
  EXPECT_EQ(pair.module, "layers.0.self_attn.q_proj");
  EXPECT_EQ(pair.alpha, 6);
  EXPECT_EQ(pair.scale, 3);
  EXPECT_EQ(pair.a.view.shape(), (Extents{2, 4}));
  EXPECT_THAT(floats_of(pair.a.view), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(pair.b.view.shape(), (Extents{8, 2}));
  EXPECT_EQ(floats_of(pair.b.view).back(), 115);
  EXPECT_EQ(adapter.pairs()[1].module, "layers.1.self_attn.q_proj");
  EXPECT_EQ(adapter.find("layers.1.self_attn.q_proj"), &adapter.pairs()[1]);
  EXPECT_EQ(adapter.find("layers.1.self_attn.k_proj"), nullptr);
  EXPECT_EQ(adapter.max_rank(), 2);
  EXPECT_EQ(adapter.size_bytes(), 2u * 4 * (2 * 4 + 8 * 2));
  EXPECT_GE(memory_.stats().active_bytes, adapter.size_bytes());
}

TEST_F(PeftDirectory, RanksAndAlphasFollowTheFirstMatchingPattern) {
  const auto tensors = joined(
      joined(peft_pair(kQuery, {8, 4}, 3), peft_pair("model.layers.1.self_attn.q_proj", {8, 4}, 4)),
      peft_pair("model.layers.1.mlp.up_proj", {6, 4}, 2));
  const Adapter adapter = read(peft_config(R"("target_modules": ["q_proj", "up_proj"],
                     "rank_pattern": {"layers.0.self_attn.q_proj": 3, "q_pro.": 4},
                     "alpha_pattern": {"layers\\.\\d+\\.mlp\\.up_proj": 7, "proj": 1},)"),
                               tensors);
  // "proj" isn't a whole part behind a dot, so it matches nothing.
  EXPECT_EQ(adapter.find("layers.0.self_attn.q_proj")->rank(), 3);
  EXPECT_EQ(adapter.find("layers.0.self_attn.q_proj")->scale, 2);
  EXPECT_EQ(adapter.find("layers.1.self_attn.q_proj")->rank(), 4);
  EXPECT_EQ(adapter.find("layers.1.self_attn.q_proj")->scale, 1.5f);
  EXPECT_EQ(adapter.find("layers.1.mlp.up_proj")->scale, 3.5f);
  EXPECT_EQ(adapter.max_rank(), 4);
}

TEST_F(PeftDirectory, RankStabilisedScaleDividesByTheRoot) {
  const Adapter adapter =
      read(peft_config(R"("target_modules": ["q_proj"], "use_rslora": true,)"), query_pairs());
  EXPECT_EQ(adapter.pairs()[0].scale, static_cast<float>(6 / std::sqrt(2.0)));
}

TEST_F(PeftDirectory, DefaultsAreThoseOfPeft) {
  const Adapter adapter =
      read(R"({"peft_type": "LORA"})", peft_pair(kQuery, {8, 4}, 8));  // r and lora_alpha: 8
  EXPECT_EQ(adapter.pairs()[0].scale, 1);
}

TEST_F(PeftDirectory, NamesWithAnAdaptersNameAndOtherPrefixes) {
  for (const std::string prefix :
       {"base_model.model.model.", "base_model.model.model.language_model.",
        "base_model.model.language_model.model.", "base_model.model.", "model."}) {
    SCOPED_TRACE(prefix);
    const std::string module = prefix + "layers.0.self_attn.q_proj";
    const Adapter adapter = read(kPeftConfig, {written_matrix(module + ".lora_A.a.weight", 2, 4),
                                               written_matrix(module + ".lora_B.a.weight", 8, 2)});
    EXPECT_EQ(adapter.pairs()[0].module, "layers.0.self_attn.q_proj");
  }
}

TEST_F(PeftDirectory, PairsOfAVisionTowerAreLeftOut) {
  const auto tensors = joined(
      query_pairs(), peft_pair("model.vision_tower.encoder.layers.0.self_attn.q_proj", {5, 3}));
  EXPECT_EQ(read(kPeftConfig, tensors).pairs().size(), 2u);
  expect_refused(ErrorCode::corrupt, {"no LoRA matrices for the text model"}, kPeftConfig,
                 peft_pair("model.vision_tower.layers.0.self_attn.q_proj", {5, 3}));
}

TEST_F(PeftDirectory, TargetsChooseTheModules) {
  const std::vector<std::string> covering = {
      R"("target_modules": ["model.layers.0.self_attn.q_proj", "layers.1.self_attn.q_proj"],)",
      R"("target_modules": ".*\\.(q|k)_proj",)",
      R"("target_modules": "ALL-linear",)",
      R"("target_modules": null,)",
      R"("target_modules": ["q_proj"], "layers_to_transform": [0, 1],)",
      R"("target_modules": ["q_proj"], "layers_to_transform": [], "layers_pattern": null,)",
      R"("target_modules": ["q_proj"], "layers_to_transform": [1, 0], "layers_pattern": "layers",)",
      R"("target_modules": ["q_proj"], "layers_to_transform": [0, 1],
         "layers_pattern": ["h", "layers"],)",
      R"("target_modules": ["q_proj"], "exclude_modules": ["k_proj"],)"};
  for (const std::string& fields : covering) {
    SCOPED_TRACE(fields);
    EXPECT_EQ(read(peft_config(fields), query_pairs()).pairs().size(), 2u);
  }
  const std::vector<std::string> missing = {
      R"("target_modules": ["k_proj", "_proj"],)",
      R"("target_modules": "q_proj",)",
      R"("target_modules": ["q_proj"], "layers_to_transform": 1,)",
      R"("target_modules": ["q_proj"], "layers_to_transform": [0, 1], "layers_pattern": "h",)",
      R"("target_modules": ["q_proj"], "exclude_modules": ["q_proj"],)",
      R"("target_modules": ["q_proj"], "exclude_modules": ".*layers\\.1.*",)"};
  for (const std::string& fields : missing) {
    SCOPED_TRACE(fields);
    expect_refused(ErrorCode::corrupt, {"adapter_model.safetensors: tensor", "doesn't choose"},
                   peft_config(fields), query_pairs());
  }
}

TEST_F(PeftDirectory, AllLinearLeavesOutTheHead) {
  const auto head = peft_pair("lm_head", {10, 4});
  expect_refused(ErrorCode::corrupt, {"lm_head", "doesn't choose"},
                 peft_config(R"("target_modules": "all-linear",)"), head);
  EXPECT_EQ(read(peft_config(R"("target_modules": ["lm_head"],)"), head).pairs()[0].module,
            "lm_head");
}

// target_parameters may choose the weight of a linear module; patterns then see its whole name.
TEST_F(PeftDirectory, ParametersOfLinearModules) {
  expect_refused(ErrorCode::corrupt, {"q_proj", "target_parameters"},
                 peft_config(R"("target_modules": [], "target_parameters": ["k_proj.weight"],)"),
                 query_pairs());
  const Adapter adapter =
      read(peft_config(R"("target_modules": [], "target_parameters": ["q_proj.weight"],
                          "alpha_pattern": {"layers.0.self_attn.q_proj.weight": 10},)"),
           query_pairs());
  EXPECT_EQ(adapter.pairs()[0].scale, 5);
  EXPECT_EQ(adapter.pairs()[1].scale, 3);
}

TEST_F(PeftDirectory, NullsDefaultsAndUnknownKeysAreIgnored) {
  const Adapter adapter = read(
      peft_config(
          R"("target_modules": ["q_proj"], "auto_mapping": null, "revision": null, "bias": "none",
             "corda_config": null, "eva_config": null, "arrow_config": null, "use_dora": false,
             "modules_to_save": null, "trainable_token_indices": null, "lora_bias": false,
             "megatron_config": null, "megatron_core": "megatron.core", "loftq_config": {},
             "layer_replication": null, "target_parameters": null, "use_qalora": false,
             "qalora_group_size": 16, "alora_invocation_tokens": null, "rank_pattern": {},
             "alpha_pattern": null, "init_lora_weights": true, "fan_in_fan_out": false,
             "lora_dropout": 0.05, "inference_mode": true, "peft_version": "0.99.0",
             "ensure_weight_tying": false, "a_field_of_the_future": {"x": 1},
             "base_model_name_or_path": "some/model",)"),
      query_pairs());
  EXPECT_EQ(adapter.base_name(), "some/model");
  for (const std::string value :
       {"false", "null", "\"gaussian\"", "\"eva\"", "\"orthogonal\"", "\"MiCA\""}) {
    read(peft_config("\"init_lora_weights\": " + value + ","), query_pairs());
  }
}

TEST_F(PeftDirectory, OtherMethodsAreRefusedByName) {
  struct RefusedCase {
    std::string fields;
    std::vector<std::string> parts;
  };
  const std::vector<RefusedCase> cases = {
      {R"("use_dora": true,)", {"use_dora", "DoRA"}},
      {R"("modules_to_save": ["lm_head"],)", {"modules_to_save", "whole modules"}},
      {R"("bias": "all",)", {"bias", "\"all\"", "\"none\""}},
      {R"("bias": "lora_only",)", {"bias", "\"lora_only\""}},
      {R"("lora_bias": true,)", {"lora_bias"}},
      {R"("trainable_token_indices": [3],)", {"trainable_token_indices", "embedding"}},
      {R"("trainable_token_indices": {"embed_tokens": [3]},)", {"trainable_token_indices"}},
      {R"("alora_invocation_tokens": [1, 2],)", {"alora_invocation_tokens"}},
      {R"("megatron_config": {"tensor_model_parallel_size": 2},)", {"megatron_config"}},
      {R"("layer_replication": [[0, 2], [1, 2]],)", {"layer_replication"}},
      {R"("use_qalora": true,)", {"use_qalora"}},
      {R"("use_bdlora": {"nblocks": 2},)", {"use_bdlora"}},
      {R"("arrow_config": {"top_k": 3},)", {"arrow_config"}},
      {R"("kasa_config": {"beta": 0.1},)", {"kasa_config"}},
      {R"("velora_config": {"scale": 2},)", {"velora_config"}},
      {R"("monteclora_config": {"num_samples": 2},)", {"monteclora_config"}},
      {R"("init_lora_weights": "pissa",)", {"init_lora_weights", "\"pissa\"", "conversion"}},
      {R"("init_lora_weights": "pissa_niter_16",)", {"init_lora_weights", "conversion"}},
      {R"("init_lora_weights": "OLoRA",)", {"init_lora_weights", "conversion"}},
      {R"("init_lora_weights": "loftq", "loftq_config": {"loftq_bits": 4},)",
       {"init_lora_weights", "conversion"}},
      {R"("init_lora_weights": "corda",)", {"init_lora_weights", "conversion"}},
      {R"("init_lora_weights": "lora_ga",)", {"init_lora_weights", "conversion"}},
      {R"("init_lora_weights": "something",)",
       {"init_lora_weights", "\"something\"", "set it to true"}},
  };
  for (const auto& [fields, parts] : cases) {
    SCOPED_TRACE(fields);
    std::vector<std::string> with_file = {"adapter_config.json: "};
    with_file.insert(with_file.end(), parts.begin(), parts.end());
    expect_refused(ErrorCode::unsupported, with_file, peft_config(fields), query_pairs());
  }
  expect_refused(ErrorCode::unsupported, {"peft_type", "\"IA3\"", "\"LORA\""},
                 R"({"peft_type": "IA3"})", query_pairs());
}

TEST_F(PeftDirectory, MalformedConfigsAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"r": 2})", "peft_type"},
      {R"([1])", "adapter_config.json"},
      {R"({"peft_type": "LORA", "r": 0})", "from 1 to 1024"},
      {R"({"peft_type": "LORA", "r": 1025})", "from 1 to 1024"},
      {R"({"peft_type": "LORA", "r": "2"})", "r: found \"2\""},
      {R"({"peft_type": "LORA", "lora_alpha": "6"})", "lora_alpha"},
      {R"({"peft_type": "LORA", "rank_pattern": {"q_proj": 0}})", "rank_pattern"},
      {R"({"peft_type": "LORA", "rank_pattern": {"(q_proj": 2}})", "not a regular expression"},
      {R"({"peft_type": "LORA", "target_modules": "*q_proj"})", "not a regular expression"},
      {R"({"peft_type": "LORA", "target_modules": 3})", "target_modules"},
      {R"({"peft_type": "LORA", "target_modules": [3]})", "target_modules[0]"},
      {R"({"peft_type": "LORA", "target_modules": "q", "layers_to_transform": [0]})",
       "layers_to_transform"},
      {R"({"peft_type": "LORA", "target_modules": ["q"], "layers_to_transform": [-1]})",
       "layers_to_transform[0]"},
      {R"({"peft_type": "LORA",)", "adapter_config.json"}};
  for (const auto& [config, part] : cases) {
    SCOPED_TRACE(config);
    expect_refused(ErrorCode::invalid, {"adapter_config.json: ", part}, config, query_pairs());
  }
}

TEST_F(PeftDirectory, OtherTensorsAreRefusedByName) {
  const std::string name = "base_model.model." + kQuery;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {name + ".lora_magnitude_vector", "DoRA"},
      {name + ".lora_magnitude_vector.weight", "DoRA"},
      {name + ".lora_B.bias", "lora_bias"},
      {"base_model.model.model.embed_tokens.lora_embedding_A", "embedding"},
      {"base_model.model.lm_head.modules_to_save.weight", "whole module"},
      {"base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta", "embedding"},
      {"base_model.model.model.embed_tokens.weight", "save_embedding_layers=False"},
      {"base_model.model.lm_head.weight", "save_embedding_layers=False"},
      {"base_model.model.lm_head.base_layer.weight", "save_embedding_layers=False"},
      {"base_model.model.model.embed_tokens.base_layer.weight", "adapted embedding"},
      {"base_model.model.model.norm.weight", "whole weights"},
      {name + ".lora_diag", "isn't a LoRA matrix"},
      {"", "isn't a LoRA matrix"}};
  for (const auto& [tensor, part] : cases) {
    SCOPED_TRACE(tensor);
    expect_refused(ErrorCode::unsupported, {"tensor \"" + tensor + "\"", part}, kPeftConfig,
                   joined(query_pairs(), {written_matrix(tensor, 2, 4)}));
  }
  expect_refused(ErrorCode::unsupported, {"adapts the embedding"}, kPeftConfig,
                 peft_pair("model.embed_tokens", {10, 4}));
}

TEST_F(PeftDirectory, PairsThatDontFitAreRefused) {
  const std::string name = "base_model.model." + kQuery;
  const FileTensor a = written_matrix(name + ".lora_A.weight", 2, 4);
  const FileTensor b = written_matrix(name + ".lora_B.weight", 8, 2);
  expect_refused(ErrorCode::corrupt, {"lora_A.weight\" has no partner", "lacks B"}, kPeftConfig,
                 {a});
  expect_refused(ErrorCode::corrupt, {"lora_B.weight\" has no partner", "lacks A"}, kPeftConfig,
                 {b});
  expect_refused(ErrorCode::corrupt, {"no LoRA matrices"}, kPeftConfig, {});
  expect_refused(ErrorCode::invalid, {"lora_A.weight", "[2, 5]", "expected [2, 4]", "[8, 4]"},
                 kPeftConfig, {written_matrix(a.name, 2, 5), b});
  expect_refused(ErrorCode::invalid, {"lora_B.weight", "[7, 2]", "expected [8, 2]"}, kPeftConfig,
                 {a, written_matrix(b.name, 7, 2)});
  expect_refused(ErrorCode::corrupt, {"lora_B.weight", "rank 3", "rank 2"}, kPeftConfig,
                 {a, written_matrix(b.name, 8, 3)});
  expect_refused(ErrorCode::corrupt, {"rank 4", "adapter_config.json says 2"}, kPeftConfig,
                 peft_pair(kQuery, {8, 4}, 4));
  expect_refused(ErrorCode::corrupt, {"rank 0"}, kPeftConfig, peft_pair(kQuery, {8, 4}, 0));
  expect_refused(ErrorCode::exhausted, {"rank 1025", "1024"}, kPeftConfig,
                 peft_pair(kQuery, {8, 4}, 1025));
  expect_refused(ErrorCode::corrupt, {"two dimensions"}, kPeftConfig,
                 {{a.name, "F32", {8}, counted_floats(8, 0)}, b});
  expect_refused(ErrorCode::corrupt, {"uint32"}, kPeftConfig,
                 {{a.name, "U32", {2, 4}, counted_floats(8, 0)}, b});
  expect_refused(ErrorCode::corrupt, {"both are A of layers.0.self_attn.q_proj"}, kPeftConfig,
                 {a, b, written_matrix(name + ".lora_A.default.weight", 2, 4)});
}

TEST_F(PeftDirectory, ModulesThatTheBaseLacksAreRefusedWithTheNearestName) {
  expect_refused(ErrorCode::not_found,
                 {"\"model.layers.0.self_attn.q_prj\"", "did you mean layers.0.self_attn.q_proj?"},
                 kPeftConfig, peft_pair("model.layers.0.self_attn.q_prj", {8, 4}));
  expect_refused(ErrorCode::not_found, {"layers.2", "it has 2 layers, from 0 to 1"}, kPeftConfig,
                 peft_pair("model.layers.2.self_attn.q_proj", {8, 4}));
}

TEST_F(PeftDirectory, NaNsAndInfinitiesAreRefused) {
  const std::string name = "base_model.model." + kQuery + ".lora_B.weight";
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    auto tensors = query_pairs();
    std::vector<float> values(16, 1);
    values[15] = bad;
    tensors[1].bytes = bytes_of(values);
    ASSERT_EQ(tensors[1].name, name);
    expect_refused(ErrorCode::numerical, {name, "NaN or an infinity"}, kPeftConfig, tensors);
  }
  for (const auto& [dtype, infinity] :
       {std::pair<std::string, uint16_t>{"F16", 0xFC00}, {"BF16", 0x7F80}}) {
    auto tensors = query_pairs();
    std::vector<uint16_t> values(16, 0);
    values[7] = infinity;
    tensors[1] = {name, dtype, {8, 2}, bytes_of(values)};
    expect_refused(ErrorCode::numerical, {name, "NaN or an infinity"}, kPeftConfig, tensors);
  }
}

TEST_F(PeftDirectory, ScalesBeyondFloatAreRefused) {
  expect_refused(ErrorCode::invalid, {"adapter_config.json", "5e+38", "too large"},
                 R"({"peft_type": "LORA", "r": 2, "lora_alpha": 1e39})", query_pairs());
}

TEST_F(PeftDirectory, LimitsHold) {
  write_peft(directory_, kPeftConfig, query_pairs());
  const auto read_within = [&](const AdapterLimits& limits) {
    read_adapter(directory_.path(), base_, memory_, limits);
  };
  read_within({});
  expect_error(ErrorCode::exhausted, {"adapter_model.safetensors", "at most 100"},
               [&] { read_within({.max_bytes = 100}); });
  expect_error(ErrorCode::exhausted, {"more than 1 pairs"}, [&] { read_within({.max_pairs = 1}); });
  expect_error(ErrorCode::invalid, {"from 1 to 1"}, [&] { read_within({.max_rank = 1}); });
  memory_.set_memory_limit(64);
  expect_error(ErrorCode::exhausted, {}, [&] { read_within({}); });
}

TEST_F(PeftDirectory, AnUnknownBaseTakesAnyLayersModule) {
  base_ = {};
  EXPECT_EQ(read(kPeftConfig, peft_pair("model.language_model.layers.7.any.q_proj", {5, 3}))
                .pairs()[0]
                .module,
            "layers.7.any.q_proj");
  expect_refused(ErrorCode::not_found, {"\"model.norm\"", "expected a layer's module"}, kPeftConfig,
                 peft_pair("model.norm", {5, 3}));
  expect_refused(ErrorCode::not_found, {"layers.0.aaa", "expected a layer's module"}, kPeftConfig,
                 peft_pair("model.layers.0." + std::string(10'000, 'a'), {5, 3}));
}

TEST_F(PeftDirectory, FormatsAreFoundByTheirFiles) {
  expect_error(ErrorCode::not_found, {"no adapter", "adapter_model.safetensors"},
               [&] { find_adapter_format(directory_.path()); });
  expect_error(ErrorCode::not_found, {"no such file"},
               [&] { find_adapter_format(directory_.path() / "nothing"); });
  directory_.write("adapter_model.bin", "PK");
  expect_error(ErrorCode::unsupported, {"adapter_model.bin", "safe_serialization=True"},
               [&] { find_adapter_format(directory_.path()); });
  write_peft(directory_, kPeftConfig, query_pairs());
  EXPECT_EQ(find_adapter_format(directory_.path()), AdapterFormat::peft);
  expect_error(ErrorCode::invalid, {"name the adapter's directory"},
               [&] { find_adapter_format(directory_.path() / "adapter_model.safetensors"); });
  directory_.write("adapters.safetensors", "");
  expect_error(ErrorCode::invalid, {"adapter_model.safetensors", "adapters.safetensors"},
               [&] { find_adapter_format(directory_.path()); });
  std::filesystem::remove(directory_.path() / "adapter_model.safetensors");
  EXPECT_EQ(find_adapter_format(directory_.path()), AdapterFormat::mlx);
  EXPECT_EQ(find_adapter_format(directory_.path() / "adapter_config.json"), AdapterFormat::gguf);
}

TEST_F(PeftDirectory, MissingConfigIsNamed) {
  directory_.write("adapter_model.safetensors", safetensors_file(query_pairs()));
  expect_error(ErrorCode::not_found, {"adapter_config.json"},
               [&] { read_adapter(directory_.path(), base_, memory_); });
}

}  // namespace
}  // namespace paceline
