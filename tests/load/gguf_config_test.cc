#include "load/gguf_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "load/gguf_model.h"
#include "tests/load/gguf_config_fixture.h"

namespace paceline {
namespace {

using GgufConfig = GgufConfigTest;

TEST_F(GgufConfig, SizesAreReadAndTheRestHasTheFormatsDefaults) {
  const DecoderConfig config = decoder(small_file("llama"));
  EXPECT_EQ(config.family, "llama");
  EXPECT_EQ(config.vocab_size, 10);
  EXPECT_EQ(config.hidden_size, 32);
  EXPECT_EQ(config.intermediate_size, 64);
  EXPECT_EQ(config.num_layers(), 6);
  EXPECT_EQ(config.num_heads, 4);
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.rotary_dim, 8);
  EXPECT_EQ(config.max_position, 512);
  EXPECT_EQ(config.norm_eps, 1e-5f);
  EXPECT_EQ(config.norm_weight_offset, 0.0f);
  EXPECT_EQ(config.ropes[0], RopeConfig{});
  EXPECT_TRUE(config.tied_head);
  EXPECT_FALSE(config.qkv_bias);
  EXPECT_EQ(windows_of(config), std::vector<int64_t>(6, 0));
}

TEST_F(GgufConfig, TensorsSayWhatKeysDoNot) {
  GgufWriter writer = small_file("llama");
  writer.floats("output.weight", {10, 32}, std::vector<float>(320));
  writer.floats("blk.0.attn_q.bias", {32}, std::vector<float>(32));
  writer.floats("blk.0.ffn_up.bias", {64}, std::vector<float>(64));
  const DecoderConfig config = decoder(writer);
  EXPECT_FALSE(config.tied_head);
  EXPECT_TRUE(config.qkv_bias);
  EXPECT_TRUE(config.mlp_bias);
}

TEST_F(GgufConfig, Float32NumbersBecomeTheirShortestDecimals) {
  GgufWriter writer = small_file("qwen3");
  writer.number("qwen3.rope.freq_base", 1000000.0f);
  const std::string json = to_json(config(writer));
  EXPECT_NE(json.find("\"rms_norm_eps\":1e-05"), json.npos) << json;
  EXPECT_EQ(decoder(writer).ropes[0].theta, 1e6);
}

TEST_F(GgufConfig, AWindowMakesALlamaAMistral) {
  GgufWriter writer = small_file("llama");
  writer.number("llama.attention.sliding_window", uint32_t{16});
  const DecoderConfig config = decoder(writer);
  EXPECT_EQ(config.family, "mistral");
  EXPECT_EQ(windows_of(config), std::vector<int64_t>(6, 16));
}

TEST_F(GgufConfig, Gemma2HasTheDefaultsOfLlamaCpp) {
  const DecoderConfig config = decoder(small_file("gemma2"));
  EXPECT_EQ(windows_of(config), (std::vector<int64_t>{4096, 0, 4096, 0, 4096, 0}));
  EXPECT_EQ(config.attention_soft_cap, 50.0f);
  EXPECT_EQ(config.final_soft_cap, 30.0f);
  EXPECT_EQ(config.attention_scale, 1.0f / std::sqrt(8.0f));
  EXPECT_EQ(config.norm_weight_offset, 0.0f);  // the file holds 1 + w
  EXPECT_EQ(config.embedding_scale, std::sqrt(32.0f));
  EXPECT_EQ(config.activation, Activation::gelu_tanh);
}

TEST_F(GgufConfig, TheLargestGemmaScalesScoresByTheWidth) {
  GgufWriter writer;
  writer.string("general.architecture", "gemma2");
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, uint32_t>>{{"block_count", 46},
                                                     {"context_length", 64},
                                                     {"embedding_length", 36},
                                                     {"feed_forward_length", 8},
                                                     {"attention.head_count", 4},
                                                     {"attention.key_length", 8}}) {
    writer.number("gemma2." + key, value);
  }
  writer.floats("token_embd.weight", {2, 36}, std::vector<float>(72));
  EXPECT_EQ(decoder(writer).attention_scale, 1.0f / std::sqrt(9.0f));
}

TEST_F(GgufConfig, Gemma3HasWindowsInAPatternAndARopeForThem) {
  GgufWriter writer = small_file("gemma3");
  writer.number("gemma3.attention.sliding_window", uint32_t{128});
  writer.number("gemma3.rope.freq_base", 1e6f);
  writer.string("gemma3.rope.scaling.type", "linear").number("gemma3.rope.scaling.factor", 8.0f);
  DecoderConfig config = decoder(writer);
  EXPECT_EQ(windows_of(config), (std::vector<int64_t>{128, 128, 128, 128, 128, 0}));
  ASSERT_EQ(config.ropes.size(), 2u);
  EXPECT_EQ(config.ropes[0], (RopeConfig{.theta = 1e6,
                                         .scaling = RopeScaling::linear,
                                         .factor = 8.0,
                                         .original_max_position = 512}));
  EXPECT_EQ(config.ropes[1], RopeConfig{.theta = 1e4});
  EXPECT_EQ(config.layers[0].rope_index, 1);
  EXPECT_EQ(config.layers[5].rope_index, 0);

  writer.numbers("gemma3.attention.sliding_window_pattern",
                 std::vector<bool>{false, true, false, true, false, true});
  config = decoder(writer);
  EXPECT_EQ(windows_of(config), (std::vector<int64_t>{0, 128, 0, 128, 0, 128}));
}

TEST_F(GgufConfig, LayersWithAWindowHaveTheThetaOfTheirOwn) {
  GgufWriter writer = small_file("olmo2");
  writer.number("olmo2.attention.sliding_window", uint32_t{128});
  writer.number("olmo2.rope.freq_base", 2e5f);
  EXPECT_EQ(decoder(writer).ropes[1].theta, 2e5);
  writer.number("olmo2.rope.freq_base_swa", 5e5f);
  const DecoderConfig config = decoder(writer);
  EXPECT_EQ(config.ropes[0].theta, 2e5);
  EXPECT_EQ(config.ropes[1].theta, 5e5);
  EXPECT_EQ(config.layers[0].rope_index, 1);
  EXPECT_EQ(config.layers[3].rope_index, 0);
}

TEST_F(GgufConfig, AStoredScaleOfScoresIsMetExactly) {
  for (const int divisor : {8, 20, 24, 168, 256}) {
    GgufWriter writer = small_file("gemma3");
    const double scale = 1.0 / std::sqrt(divisor);
    writer.number("gemma3.attention.scale", static_cast<float>(scale));
    EXPECT_EQ(decoder(writer).attention_scale, 1.0f / std::sqrt(static_cast<float>(divisor)));
  }
}

TEST_F(GgufConfig, RopeFreqsAreDivisorsOfEachFrequency) {
  GgufWriter writer = small_file("llama");
  writer.floats("rope_freqs.weight", {4}, {1.0f, 1.0f, 2.5f, 8.0f});
  const DecoderConfig config = decoder(writer);
  EXPECT_EQ(config.ropes[0].scaling, RopeScaling::by_frequency);
  EXPECT_EQ(config.ropes[0].frequency_divisors, (std::vector<float>{1.0f, 1.0f, 2.5f, 8.0f}));
  EXPECT_EQ(config.ropes[0].attention_factor, 1.0);
  GgufWriter longer = small_file("llama");
  longer.floats("rope_freqs.weight", {5}, {1.0f, 1.0f, 2.5f, 8.0f, 8.0f});
  expect_error(ErrorCode::invalid, {"5 factors, expected 4"}, [&] { decoder(longer); });
}

TEST_F(GgufConfig, YarnKeepsItsOriginalContext) {
  GgufWriter writer = small_file("qwen2");
  writer.string("qwen2.rope.scaling.type", "yarn").number("qwen2.rope.scaling.factor", 4.0f);
  writer.number("qwen2.rope.scaling.original_context_length", uint32_t{128});
  const RopeConfig rope = decoder(writer).ropes[0];
  EXPECT_EQ(rope.scaling, RopeScaling::yarn);
  EXPECT_EQ(rope.factor, 4.0);
  EXPECT_EQ(rope.original_max_position, 128);
  EXPECT_NEAR(rope.attention_factor, 0.1 * std::log(4.0) + 1.0, 1e-12);
}

TEST_F(GgufConfig, AFactorWithoutATypeIsLinearScaling) {
  GgufWriter writer = small_file("llama");
  writer.number("llama.rope.scaling.factor", 4.0f).number("llama.rope.scale_linear", 2.0f);
  const RopeConfig rope = decoder(writer).ropes[0];
  EXPECT_EQ(rope.scaling, RopeScaling::linear);
  EXPECT_EQ(rope.factor, 4.0);
  GgufWriter old = small_file("llama");
  old.number("llama.rope.scale_linear", 2.0f);
  EXPECT_EQ(decoder(old).ropes[0].factor, 2.0);
  GgufWriter none = small_file("llama");
  none.string("llama.rope.scaling.type", "none").number("llama.rope.scaling.factor", 4.0f);
  EXPECT_EQ(decoder(none).ropes[0], RopeConfig{});
  GgufWriter absent = small_file("llama");
  absent.number("llama.rope.scaling.factor", 0.0f);
  EXPECT_EQ(decoder(absent).ropes[0], RopeConfig{});
}

// llama.cpp: (0.1 ln(factor) + 1) / (0.1 m ln(factor) + 1) * attn_factor.
TEST_F(GgufConfig, FactorsOfAnglesAreThoseOfLlamaCpp) {
  const auto yarn = [&](std::string_view key, float value) {
    GgufWriter writer = small_file("qwen2");
    writer.string("qwen2.rope.scaling.type", "yarn").number("qwen2.rope.scaling.factor", 4.0f);
    writer.number("qwen2.rope.scaling." + std::string(key), value);
    return writer;
  };
  const double own = 0.1 * std::log(4.0) + 1.0;
  EXPECT_NEAR(decoder(yarn("attn_factor", 1.5f)).ropes[0].attention_factor, 1.5 * own, 1e-12);
  EXPECT_NEAR(decoder(yarn("yarn_log_multiplier", 0.5f)).ropes[0].attention_factor,
              own / (0.05 * std::log(4.0) + 1.0), 1e-12);
  EXPECT_NEAR(decoder(yarn("yarn_ext_factor", 1.0f)).ropes[0].attention_factor, own, 1e-12);
  EXPECT_NEAR(decoder(yarn("yarn_ext_factor", -1.0f)).ropes[0].attention_factor, own, 1e-12);
  EXPECT_EQ(decoder(yarn("yarn_ext_factor", 0.0f)).ropes[0].scaling, RopeScaling::linear);
  expect_refused(ErrorCode::unsupported, {"qwen2.rope.scaling.yarn_ext_factor", "0.5"},
                 yarn("yarn_ext_factor", 0.5f));
  EXPECT_EQ(decoder(yarn("yarn_attn_factor", 1.25f)).ropes[0].attention_factor, 1.25);
  EXPECT_NEAR(decoder(yarn("yarn_attn_factor", 1.0f)).ropes[0].attention_factor, own, 1e-12);

  GgufWriter linear = small_file("llama");
  linear.number("llama.rope.scaling.factor", 2.0f).number("llama.rope.scaling.attn_factor", 1.5f);
  const RopeConfig rope = decoder(linear).ropes[0];
  EXPECT_EQ(rope.frequency_divisors, (std::vector<float>{2.0f, 2.0f, 2.0f, 2.0f}));
  EXPECT_EQ(rope.attention_factor, 1.5);
}

TEST_F(GgufConfig, NoWindowOfAMistralIsNone) {
  EXPECT_EQ(windows_of(decoder(small_file("mistral"))), std::vector<int64_t>(6, 0));
}

// Gemma 4: every sixth layer has no window, the last two read the keys and values of others.
TEST_F(GgufConfig, LayersThatDifferHaveTheirSizes) {
  const auto file = [](std::vector<int32_t> columns, float divisor) {
    GgufWriter writer;
    writer.string("general.architecture", "gemma4");
    writer.floats("token_embd.weight", {10, 32}, std::vector<float>(320));
    const auto add = [&](const std::string& key, uint32_t value) {
      writer.number("gemma4." + key, value);
    };
    writer.numbers("gemma4.attention.head_count_kv", std::vector<int32_t>{2, 2, 1, 2, 2, 1});
    writer.numbers("gemma4.attention.sliding_window_pattern",
                   std::vector<int32_t>{1, 1, 0, 1, 1, 0});
    writer.numbers("gemma4.feed_forward_length", columns);
    add("block_count", 6);
    add("context_length", 512);
    add("embedding_length", 32);
    add("attention.head_count", 4);
    add("attention.key_length", 16);
    add("attention.key_length_swa", 8);
    add("attention.sliding_window", 24);
    add("attention.shared_kv_layers", 2);
    add("embedding_length_per_layer_input", 4);
    writer.floats("rope_freqs.weight", {8}, {1, 1, 1, divisor, 1e30f, 1e30f, 1e30f, 1e30f});
    writer.floats("per_layer_token_embd.weight", {9, 24}, std::vector<float>(216));
    return writer;
  };
  const std::vector<int32_t> doubled = {64, 64, 64, 64, 128, 128};
  const DecoderConfig config = decoder(file(doubled, 1e30f));
  EXPECT_EQ(config.family, "gemma4_text");
  EXPECT_EQ(windows_of(config), (std::vector<int64_t>{24, 24, 0, 24, 24, 0}));
  const LayerConfig &full = config.layers[2], &last = config.layers[5];
  EXPECT_EQ(config.head_dim_of(0), 8);
  EXPECT_EQ(config.num_kv_heads_of(0), 2);
  EXPECT_EQ(config.head_dim_of(2), 16);
  EXPECT_EQ(config.num_kv_heads_of(2), 1);
  EXPECT_TRUE(full.values_are_keys);  // the file has no attn_v
  EXPECT_EQ(last.shares_cache_of, 2);
  EXPECT_EQ(config.layers[4].shares_cache_of, 3);
  EXPECT_EQ(config.intermediate_size_of(3), 64);
  EXPECT_EQ(config.intermediate_size_of(4), 128);
  EXPECT_EQ(config.ropes[1].rotated_pairs, 3);
  EXPECT_EQ(config.layer_inputs, (LayerInputConfig{.width = 4, .vocab_size = 9}));
  expect_refused(ErrorCode::unsupported, {"rope_freqs.weight", "found 2"}, file(doubled, 2.0f));
  expect_refused(ErrorCode::unsupported, {"gemma4.feed_forward_length"},
                 file({64, 64, 64, 128, 128, 128}, 1e30f));
  expect_refused(ErrorCode::corrupt, {"gemma4.feed_forward_length", "5 entries for 6"},
                 file({64, 64, 64, 64, 64}, 1e30f));
}

// The numbers of a file decide sizes and lists, so each must be bounded.
TEST_F(GgufConfig, AnyNumberIsReadOrRefused) {
  const auto integers = {"block_count",
                         "context_length",
                         "embedding_length",
                         "feed_forward_length",
                         "attention.head_count",
                         "attention.head_count_kv",
                         "attention.key_length",
                         "attention.value_length",
                         "attention.sliding_window",
                         "attention.sliding_window_pattern",
                         "rope.dimension_count",
                         "rope.scaling.original_context_length",
                         "expert_count",
                         "ssm.conv_kernel",
                         "ssm.inner_size",
                         "ssm.state_size",
                         "ssm.group_count",
                         "ssm.time_step_rank",
                         "full_attention_interval"};
  const auto floats = {"attention.layer_norm_rms_epsilon",
                       "attention.scale",
                       "attn_logit_softcapping",
                       "final_logit_softcapping",
                       "rope.freq_base",
                       "rope.freq_base_swa",
                       "rope.scaling.factor",
                       "rope.scale_linear",
                       "rope.scaling.attn_factor",
                       "rope.scaling.yarn_attn_factor",
                       "rope.scaling.yarn_ext_factor",
                       "rope.scaling.yarn_log_multiplier",
                       "rope.scaling.yarn_beta_fast",
                       "rope.scaling.yarn_beta_slow"};
  int num_read = 0, num_refused = 0;
  const auto try_one = [&](const GgufWriter& writer) {
    try {
      decoder(writer);
      ++num_read;
    } catch (const Error& error) {
      const ErrorCode code = error.code();
      EXPECT_TRUE(code == ErrorCode::corrupt || code == ErrorCode::unsupported ||
                  code == ErrorCode::invalid)
          << error.what();
      ++num_refused;
    }
  };
  for (const std::string arch :
       {"llama", "qwen2", "gemma2", "gemma3", "gemma4", "qwen35", "lfm2", "granitehybrid",
        "nemotron_h", "falcon-h1", "mamba2", "mamba", "jamba"}) {
    const auto file_without = [&](const std::string& key) {
      GgufWriter writer = small_file(arch, key);
      for (const std::string size :
           {"ssm.conv_kernel", "ssm.inner_size", "ssm.state_size", "ssm.group_count",
            "ssm.time_step_rank", "attention.key_length_swa"}) {
        if (size != key) writer.number(arch + "." + size, uint32_t{4});
      }
      writer.string(arch + ".rope.scaling.type", "yarn");
      if (key != "rope.scaling.factor") writer.number(arch + ".rope.scaling.factor", 4.0f);
      return writer;
    };
    for (const std::string key : integers) {
      for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{7}, int64_t{1} << 24,
                                  int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
        GgufWriter writer = file_without(key);
        try_one(writer.number(arch + "." + key, value));
      }
    }
    for (const std::string key : floats) {
      for (const float value : {0.0f, -1.0f, 1e-30f, 1e30f, INFINITY, NAN}) {
        GgufWriter writer = file_without(key);
        try_one(writer.number(arch + "." + key, value));
      }
    }
  }
  EXPECT_GT(num_read, 100);
  EXPECT_GT(num_refused, 100);
}

TEST_F(GgufConfig, PartOfAHeadMayBeRotated) {
  const auto partly = [&](const std::string& architecture) {
    GgufWriter writer = small_file(architecture);
    writer.number(architecture + ".attention.key_length", uint32_t{98});
    writer.number(architecture + ".attention.value_length", uint32_t{98});
    writer.number(architecture + ".rope.dimension_count", uint32_t{46});
    return writer;
  };
  for (const std::string architecture : {"stablelm", "phi3"}) {
    EXPECT_EQ(decoder(partly(architecture)).rotary_dim, 46);
  }
  expect_refused(ErrorCode::unsupported, {"qwen2.rope.dimension_count", "46 rotated"},
                 partly("qwen2"));
}

// What transformers would take a default for, or fail without, when `convert` has written it.
TEST_F(GgufConfig, FieldsHaveTheNamesOfTransformersClasses) {
  GgufWriter mixture = small_file("glm4moe");
  mixture.number("glm4moe.expert_count", uint32_t{6})
      .number("glm4moe.expert_used_count", uint32_t{2});
  EXPECT_EQ(config(mixture).find("n_routed_experts")->integer(), 6);
  EXPECT_EQ(config(mixture).find("num_experts"), nullptr);
  const Json rope = *config(small_file("mistral3")).find("rope_parameters");
  EXPECT_EQ(rope.find("original_max_position_embeddings")->integer(), 512);
  EXPECT_EQ(decoder(small_file("mistral3")).query_growth.beta, 0.0);
}

TEST_F(GgufConfig, MixturesAreReadAndLayersWithoutARouterAreDense) {
  GgufWriter writer = small_file("qwen2moe");
  writer.number("qwen2moe.expert_count", uint32_t{6});
  writer.number("qwen2moe.expert_used_count", uint32_t{2});
  writer.number("qwen2moe.expert_feed_forward_length", uint32_t{24});
  for (const int layer : {0, 1, 2, 4, 5}) {
    writer.floats("blk." + std::to_string(layer) + ".ffn_gate_inp.weight", {6, 32},
                  std::vector<float>(192));
  }
  const DecoderConfig config = decoder(writer);
  EXPECT_EQ(config.family, "qwen2_moe");
  EXPECT_EQ(config.mixture->routing.num_experts, 6);
  EXPECT_EQ(config.mixture->routing.experts_per_token, 2);
  EXPECT_EQ(config.mixture->routing.shared, SharedExpert::gated);
  EXPECT_FALSE(config.mixture->routing.normalise);
  EXPECT_EQ(config.mixture->expert_size, 24);
  EXPECT_EQ(config.mixture->shared_size, 64);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(config.layers[i].is_mixture, i != 3) << i;
}

TEST_F(GgufConfig, LlamaWithExpertsIsMixtral) {
  GgufWriter writer = small_file("llama");
  writer.number("llama.expert_count", uint32_t{8}).number("llama.expert_used_count", uint32_t{2});
  const DecoderConfig config = decoder(writer);
  EXPECT_EQ(config.family, "mixtral");
  EXPECT_TRUE(config.mixture->routing.normalise);
  EXPECT_EQ(config.mixture->expert_size, 64);
  writer.number("llama.expert_gating_func", uint32_t{2});
  expect_refused(ErrorCode::unsupported, {"llama.expert_gating_func"}, writer);
}

// The keys of gated delta nets, with one of another value.
GgufWriter delta_net_file(std::string_view other = {}, uint32_t value = 0) {
  GgufWriter writer = small_file("qwen35");
  for (const auto& [key, usual] :
       std::vector<std::pair<std::string, uint32_t>>{{"conv_kernel", 4},
                                                     {"state_size", 8},
                                                     {"group_count", 2},
                                                     {"time_step_rank", 6},
                                                     {"inner_size", 72}}) {
    writer.number("qwen35.ssm." + key, key == other ? value : usual);
  }
  return writer;
}

std::vector<MixerKind> mixers_of(const DecoderConfig& config) {
  std::vector<MixerKind> mixers;
  for (const LayerConfig& layer : config.layers) mixers.push_back(layer.mixer);
  return mixers;
}

TEST_F(GgufConfig, DeltaNetsHaveTheirSizesAndPlaces) {
  using enum MixerKind;
  GgufWriter writer = delta_net_file();
  writer.floats("blk.3.attn_q.bias", {64}, std::vector<float>(64));
  const DecoderConfig config = decoder(writer);
  EXPECT_EQ(
      config.delta_net,
      (DeltaNetConfig{.key_heads = 2, .value_heads = 6, .key_dim = 8, .value_dim = 12, .taps = 4}));
  EXPECT_EQ(config.norm_weight_offset, 0.0f);  // the file holds 1 + w
  EXPECT_TRUE(config.qkv_bias);
  EXPECT_EQ(config.rotary_dim, 8);
  EXPECT_EQ(mixers_of(config),
            (std::vector{delta_net, delta_net, delta_net, attention, delta_net, delta_net}));
  EXPECT_EQ(decoder(delta_net_file().number("qwen35.full_attention_interval", uint32_t{2}))
                .layers[1]
                .mixer,
            attention);
  writer.numbers("qwen35.attention.recurrent_layers",
                 std::vector<bool>{false, true, true, false, true, false, false});
  EXPECT_EQ(mixers_of(decoder(writer)),
            (std::vector{attention, delta_net, delta_net, attention, delta_net, attention}));
}

TEST_F(GgufConfig, LayersThatPredictFurtherTokensAreLeftOut) {
  GgufWriter writer = delta_net_file();
  writer.number("qwen35.nextn_predict_layers", uint32_t{1});
  writer.floats("blk.5.nextn.eh_proj.weight", {1, 1}, {0})
      .floats("blk.5.attn_q.weight", {1, 1}, {0});
  writer.floats("blk.4.ffn_up.weight", {1, 1}, {0});
  EXPECT_EQ(decoder(writer).num_layers(), 5);
  const auto weights = open_gguf_weights(
      std::make_shared<const GgufFile>(directory_.path() / "model.gguf"), memory_);
  std::vector<std::string> names;
  for (const CheckpointEntry& entry : weights->entries()) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"model.embed_tokens.weight",
                                             "model.layers.4.mlp.up_proj.weight"}));
}

TEST_F(GgufConfig, DeltaNetsOfOtherSizesAreRefused) {
  expect_refused(ErrorCode::corrupt,
                 {"qwen35.ssm.inner_size: 73, expected a multiple of the 6 heads of "
                  "qwen35.ssm.time_step_rank"},
                 delta_net_file("inner_size", 73));
  expect_refused(ErrorCode::corrupt,
                 {"qwen35.ssm.time_step_rank: 6, expected a multiple of the 4 key heads"},
                 delta_net_file("group_count", 4));
  expect_refused(ErrorCode::corrupt, {"qwen35.ssm.state_size: 0"}, delta_net_file("state_size", 0));
  expect_refused(ErrorCode::corrupt, {"qwen35.ssm.inner_size: missing"}, small_file("qwen35"));
  GgufWriter few = delta_net_file();
  few.numbers("qwen35.attention.recurrent_layers", std::vector<bool>{true});
  expect_refused(ErrorCode::corrupt, {"recurrent_layers: 1 numbers for 6 layers"}, few);
  GgufWriter windowed = delta_net_file();
  windowed.number("qwen35.attention.sliding_window", uint32_t{8});
  expect_refused(ErrorCode::unsupported, {"sliding_window: windows beside layers with states"},
                 windowed);
}

TEST_F(GgufConfig, LayersWithoutKeyHeadsAreConvolutions) {
  using enum MixerKind;
  const auto with_heads = [&](const std::vector<int32_t>& heads) {
    GgufWriter writer = small_file("lfm2", "attention.head_count_kv");
    return writer.numbers("lfm2.attention.head_count_kv", heads)
        .number("lfm2.shortconv.l_cache", uint32_t{3});
  };
  const DecoderConfig config = decoder(with_heads({0, 0, 2, 0, 2, 0}));
  EXPECT_EQ(mixers_of(config), (std::vector{convolution, convolution, attention, convolution,
                                            attention, convolution}));
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.intermediate_size, 64);
  EXPECT_EQ(config.convolution, (GatedConvolutionConfig{.taps = 3, .bias = false}));
  expect_refused(ErrorCode::unsupported, {"head_count_kv: layers that differ (2 and 4)"},
                 with_heads({0, 2, 4, 0, 0, 0}));
  expect_refused(ErrorCode::corrupt, {"head_count_kv: 0 in every layer"},
                 with_heads({0, 0, 0, 0, 0, 0}));
  expect_refused(ErrorCode::corrupt, {"head_count_kv: 2 numbers for 6 layers"}, with_heads({0, 2}));
}

TEST_F(GgufConfig, LayersWithoutKeyHeadsAreMambasInGranite) {
  using enum MixerKind;
  const auto with_inner = [&](uint32_t inner) {
    GgufWriter writer = small_file("granitehybrid", "attention.head_count_kv");
    writer.numbers("granitehybrid.attention.head_count_kv", std::vector<int32_t>{0, 2, 0, 0, 2, 0});
    for (const auto& [key, size] :
         std::vector<std::pair<std::string, uint32_t>>{{"conv_kernel", 4},
                                                       {"state_size", 8},
                                                       {"group_count", 2},
                                                       {"time_step_rank", 16},
                                                       {"inner_size", inner}}) {
      writer.number("granitehybrid.ssm." + key, size);
    }
    return writer.boolean("granitehybrid.rope.scaling.finetuned", false);
  };
  const DecoderConfig config = decoder(with_inner(64));
  EXPECT_EQ(config.family, "granitemoehybrid");
  EXPECT_EQ(mixers_of(config), (std::vector{mamba2, attention, mamba2, mamba2, attention, mamba2}));
  EXPECT_EQ(config.mamba2->heads, 16);
  EXPECT_EQ(config.mamba2->head_dim, 4);
  EXPECT_EQ(config.mamba2->groups, 2);
  EXPECT_EQ(config.mamba2->state_size, 8);
  EXPECT_FALSE(config.mamba2->convolution_bias);
  EXPECT_EQ(config.intermediate_size, 64);
  EXPECT_EQ(config.layers[1].rope_index, kNoRope);
  EXPECT_FALSE(config.mixture);
  expect_refused(ErrorCode::corrupt,
                 {"granitehybrid.ssm.inner_size: 80, expected a multiple of the 16 heads of "
                  "granitehybrid.ssm.time_step_rank and of granitehybrid.embedding_length"},
                 with_inner(80));
}

TEST_F(GgufConfig, LayersOfNemotronAreWhatHasNumbers) {
  using enum MixerKind;
  const auto with_columns = [&](const std::vector<int32_t>& columns) {
    GgufWriter writer;
    writer.string("general.architecture", "nemotron_h_moe");
    for (const auto& [key, size] :
         std::vector<std::pair<std::string, uint32_t>>{{"block_count", 5},
                                                       {"nextn_predict_layers", 1},
                                                       {"context_length", 64},
                                                       {"embedding_length", 32},
                                                       {"attention.head_count", 4},
                                                       {"attention.key_length", 16},
                                                       {"expert_count", 6},
                                                       {"expert_used_count", 2},
                                                       {"expert_feed_forward_length", 24},
                                                       {"expert_shared_feed_forward_length", 40},
                                                       {"ssm.conv_kernel", 4},
                                                       {"ssm.state_size", 8},
                                                       {"ssm.group_count", 2},
                                                       {"ssm.time_step_rank", 6},
                                                       {"ssm.inner_size", 72}}) {
      writer.number("nemotron_h_moe." + key, size);
    }
    writer.number("nemotron_h_moe.expert_weights_scale", 2.5f);
    writer.number("nemotron_h_moe.attention.layer_norm_epsilon", 1e-4f);
    writer.numbers("nemotron_h_moe.attention.head_count_kv", std::vector<int32_t>{0, 0, 2, 0, 2});
    writer.numbers("nemotron_h_moe.feed_forward_length", columns);
    return writer.floats("token_embd.weight", {10, 32}, std::vector<float>(320));
  };
  const DecoderConfig config = decoder(with_columns({0, 24, 0, 24, 24}));
  EXPECT_EQ(mixers_of(config), (std::vector{mamba2, none, attention, none}));
  EXPECT_TRUE(config.layers[1].is_mixture);
  EXPECT_EQ(config.norm_eps, 1e-4f);
  EXPECT_EQ(config.mamba2->head_dim, 12);
  EXPECT_EQ(config.mixture->expert_size, 24);
  EXPECT_EQ(config.mixture->shared_size, 40);
  EXPECT_EQ(config.mixture->routing.scale, 2.5f);
  expect_refused(ErrorCode::unsupported, {"feed_forward_length: layer 2: MLPs behind attention"},
                 with_columns({0, 24, 24, 24, 24}));
  expect_refused(ErrorCode::unsupported, {"feed_forward_length: layers that differ (24 and 12)"},
                 with_columns({0, 24, 0, 12, 0}));
  expect_refused(ErrorCode::corrupt, {"feed_forward_length: 2 numbers for 4 layers"},
                 with_columns({0, 24}));
}

// Adds the keys and tensors of Mamba 2 whose inner columns are `inner`.
void add_mambas(GgufWriter& writer, const std::string& arch, uint32_t inner) {
  for (const auto& [key, size] :
       std::vector<std::pair<std::string, uint32_t>>{{"conv_kernel", 4},
                                                     {"state_size", 8},
                                                     {"group_count", 2},
                                                     {"time_step_rank", 16},
                                                     {"inner_size", inner}}) {
    writer.number(arch + ".ssm." + key, size);
  }
  writer.floats("blk.0.ssm_norm.weight", {2, inner / 2}, std::vector<float>(inner));
  writer.floats("blk.0.ssm_out.bias", {32}, std::vector<float>(32));
}

TEST_F(GgufConfig, FalconsLayersAreMambasBesideAttention) {
  using enum MixerKind;
  const auto with_inner = [&](uint32_t inner) {
    GgufWriter writer = small_file("falcon-h1");
    add_mambas(writer, "falcon-h1", inner);
    return writer;
  };
  const DecoderConfig config = decoder(with_inner(80));
  EXPECT_EQ(config.family, "falcon_h1");
  EXPECT_EQ(config.num_layers(), 12);
  EXPECT_EQ(config.layers[0].mixer, mamba2);
  EXPECT_EQ(config.layers[1].mixer, attention);
  EXPECT_EQ(config.mamba2->heads, 16);
  EXPECT_EQ(config.mamba2->head_dim, 5);
  EXPECT_EQ(config.mamba2->norm, GatedNorm::gate_first);
  EXPECT_FALSE(config.mamba2->input_bias);
  EXPECT_TRUE(config.mamba2->output_bias);
  EXPECT_EQ(config.embedding_scale, 1.0f);
  expect_refused(ErrorCode::corrupt,
                 {"falcon-h1.ssm.inner_size: 88, expected a multiple of the 16 heads of "
                  "falcon-h1.ssm.time_step_rank"},
                 with_inner(88));
}

TEST_F(GgufConfig, LayersOfMamba2AreMambasAlone) {
  GgufWriter writer = small_file("mamba2", "attention.head_count");
  writer.number("mamba2.attention.head_count", uint32_t{0});
  add_mambas(writer, "mamba2", 64);
  const DecoderConfig config = decoder(writer);
  EXPECT_EQ(mixers_of(config), std::vector(6, MixerKind::mamba2));
  EXPECT_FALSE(config.layers[0].has_mlp);
  EXPECT_EQ(config.mamba2->heads, 16);
  EXPECT_EQ(config.mamba2->head_dim, 4);
  EXPECT_EQ(config.norm_eps, 1e-5f);
}

TEST_F(GgufConfig, LayersOfMambaAreMambasAlone) {
  const auto with_norms = [&](bool norms) {
    GgufWriter writer = small_file("mamba", "attention.head_count");
    writer.number("mamba.attention.head_count", uint32_t{0});
    add_mambas(writer, "mamba", 64);
    return writer.boolean("mamba.ssm.dt_b_c_rms", norms);
  };
  const DecoderConfig config = decoder(with_norms(false));
  EXPECT_EQ(mixers_of(config), std::vector(6, MixerKind::mamba1));
  EXPECT_EQ(config.mamba1->inner, 64);
  EXPECT_EQ(config.mamba1->step_rank, 16);
  EXPECT_EQ(config.mamba1->norms, StepNorms::none);
  EXPECT_EQ(decoder(with_norms(true)).mamba1->norms, StepNorms::unit);
}

TEST_F(GgufConfig, LayersOfJambaHaveAPeriod) {
  using enum MixerKind;
  const auto with_heads = [&](const std::vector<int32_t>& heads) {
    GgufWriter writer = small_file("jamba", "attention.head_count_kv");
    writer.numbers("jamba.attention.head_count_kv", heads);
    add_mambas(writer, "jamba", 64);
    return writer;
  };
  EXPECT_EQ(mixers_of(decoder(with_heads({0, 2, 0, 0, 2, 0}))),
            (std::vector{mamba1, attention, mamba1, mamba1, attention, mamba1}));
  EXPECT_EQ(mixers_of(decoder(with_heads({0, 0, 0, 0, 0, 2}))),
            (std::vector{mamba1, mamba1, mamba1, mamba1, mamba1, attention}));
  EXPECT_FALSE(decoder(with_heads({2, 0, 2, 0, 2, 0})).mixture);
  expect_refused(ErrorCode::unsupported,
                 {"jamba.attention.head_count_kv: layers without a period (layer 4)"},
                 with_heads({0, 2, 0, 2, 2, 0}));
}

// Newer files say what the cache holds, too; older ones have the sizes of heads under those names.
TEST_F(GgufConfig, LatentsHaveTheSizesOfHeadsInEitherSpelling) {
  const auto file = [](const std::string& arch, bool is_split) {
    GgufWriter writer = small_file(arch);
    const auto size = [&](const std::string& key, uint32_t value) {
      writer.number(arch + "." + key, value);
    };
    size("attention.kv_lora_rank", 20);
    size("rope.dimension_count", 8);
    size("attention.key_length", is_split ? 28 : 21);
    size("attention.value_length", is_split ? 20 : 10);
    if (is_split) size("attention.key_length_mla", 21);
    if (is_split) size("attention.value_length_mla", 10);
    return writer;
  };
  for (const bool is_split : {false, true}) {
    GgufWriter lite = file("deepseek2", is_split);
    lite.number("deepseek2.expert_count", uint32_t{6})
        .number("deepseek2.expert_used_count", uint32_t{2})
        .number("deepseek2.expert_shared_count", uint32_t{2})
        .number("deepseek2.expert_feed_forward_length", uint32_t{12})
        .number("deepseek2.leading_dense_block_count", uint32_t{1});
    const DecoderConfig read = decoder(lite);
    const LatentConfig sizes{
        .query_rank = 0, .rank = 20, .nope_dim = 13, .rope_dim = 8, .value_dim = 10};
    EXPECT_EQ(read.latent, sizes);
    EXPECT_EQ(read.head_dim, 28);
    EXPECT_EQ(read.rope_pairs, RopePairs::neighbours);
    EXPECT_FALSE(read.layers[0].is_mixture);
    EXPECT_TRUE(read.layers[1].is_mixture);
    EXPECT_EQ(read.mixture->routing.score, ExpertScore::softmax);
    EXPECT_EQ(read.mixture->shared_size, 24);
    lite.number("deepseek2.expert_gating_func", uint32_t{2})
        .number("deepseek2.attention.q_lora_rank", uint32_t{18})
        .number("deepseek2.rope.scaling.factor", 40.0f)
        .string("deepseek2.rope.scaling.type", "yarn")
        .number("deepseek2.rope.scaling.yarn_log_multiplier", 0.1f);
    const DecoderConfig third = decoder(lite);
    EXPECT_EQ(third.family, "deepseek_v3");
    EXPECT_EQ(third.latent->query_rank, 18);
    EXPECT_EQ(third.mixture->routing.num_groups, 1);
    EXPECT_EQ(third.mixture->routing.score, ExpertScore::sigmoid);
    const double stretched = 0.1 * std::log(40.0) + 1.0;
    EXPECT_FLOAT_EQ(third.attention_scale,
                    static_cast<float>(stretched * stretched / std::sqrt(21.0)));
    EXPECT_FLOAT_EQ(static_cast<float>(third.ropes[0].attention_factor), 1.0f);
  }
  const DecoderConfig dense = decoder(file("minicpm3", false));
  EXPECT_EQ(dense.rope_pairs, RopePairs::halves);
  EXPECT_EQ(dense.embedding_scale, 12.0f);
  EXPECT_FLOAT_EQ(dense.logits_scale, 256.0f / 32.0f);
  GgufWriter odd = file("minicpm3", false);
  odd.number("minicpm3.attention.key_length_mla", uint32_t{8});
  expect_refused(ErrorCode::corrupt, {"attention.key_length: 8, expected more than the 8"}, odd);
}

// Layers without heads of keys have states, of as many heads as attention has.
TEST_F(GgufConfig, KimisStatesAndLatentsStandBesideEachOther) {
  GgufWriter writer = small_file("kimi-linear", "attention.head_count_kv");
  const auto size = [&](const std::string& key, uint32_t value) {
    writer.number("kimi-linear." + key, value);
  };
  writer.numbers("kimi-linear.attention.head_count_kv", std::vector<uint32_t>{0, 0, 1, 0, 0, 1});
  for (const auto& [key, value] : {std::pair<const char*, uint32_t>{"kda.head_dim", 6},
                                   {"ssm.conv_kernel", 3},
                                   {"attention.kv_lora_rank", 20},
                                   {"rope.dimension_count", 8},
                                   {"attention.key_length_mla", 21},
                                   {"attention.value_length_mla", 10},
                                   {"expert_count", 6},
                                   {"expert_used_count", 2},
                                   {"expert_shared_count", 2},
                                   {"expert_feed_forward_length", 12},
                                   {"expert_gating_func", 2},
                                   {"leading_dense_block_count", 1}}) {
    size(key, value);
  }
  writer.number("kimi-linear.expert_weights_scale", 2.5f);
  const DecoderConfig read = decoder(writer);
  using enum MixerKind;
  EXPECT_EQ(mixers_of(read),
            (std::vector{delta_net, delta_net, attention, delta_net, delta_net, attention}));
  EXPECT_TRUE(read.delta_net->channel_decay);
  EXPECT_EQ(read.delta_net->value_heads, 4);
  EXPECT_EQ(read.delta_net->key_dim, 6);
  EXPECT_EQ(read.delta_net->taps, 3);
  EXPECT_EQ(read.latent->nope_dim, 13);
  EXPECT_EQ(read.layers[2].rope_index, kNoRope);
  EXPECT_FALSE(read.layers[0].is_mixture);
  EXPECT_TRUE(read.layers[1].is_mixture);
  EXPECT_EQ(read.mixture->routing.scale, 2.5f);
  EXPECT_TRUE(read.mixture->routing.normalise);
  EXPECT_EQ(read.mixture->shared_size, 24);
}

TEST_F(GgufConfig, WhatIsNotSupportedIsNamed) {
  expect_refused(ErrorCode::unsupported,
                 {"general.architecture: \"bloom\" isn't supported", "llama", "mistral", "qwen2",
                  "qwen3", "gemma2", "gemma3"},
                 small_file("bloom"));
  expect_refused(ErrorCode::corrupt, {"general.architecture is missing"}, GgufWriter());
  GgufWriter experts = small_file("gemma2");
  experts.number("gemma2.expert_count", uint32_t{8});
  expect_refused(ErrorCode::unsupported, {"gemma2.expert_count: mixtures of experts"}, experts);
  GgufWriter scaled = small_file("llama");
  scaled.string("llama.rope.scaling.type", "ntk").number("llama.rope.scaling.factor", 4.0f);
  expect_refused(ErrorCode::unsupported, {"llama.rope.scaling.type: \"ntk\""}, scaled);
  GgufWriter partly = small_file("llama");
  partly.number("llama.rope.dimension_count", uint32_t{4});
  expect_refused(ErrorCode::unsupported, {"heads of 8 elements with 4 rotated"}, partly);
  GgufWriter differing = small_file("qwen3");
  differing.number("qwen3.attention.value_length", uint32_t{16});
  expect_refused(ErrorCode::unsupported, {"values of 16 elements beside keys of 8"}, differing);
  GgufWriter attention = small_file("qwen3");
  attention.number("qwen3.attention.scale", 0.25f);
  expect_refused(ErrorCode::unsupported, {"qwen3.attention.scale: scores scaled by 0.25"},
                 attention);
}

TEST_F(GgufConfig, SizesOutOfRangeAreRefusedBeforeAnythingIsMadeByThem) {
  const auto with = [](const char* key, auto value) {
    GgufWriter writer;
    writer.string("general.architecture", "llama");
    for (const auto& [name, size] :
         std::vector<std::pair<std::string, uint32_t>>{{"block_count", 2},
                                                       {"context_length", 64},
                                                       {"embedding_length", 32},
                                                       {"feed_forward_length", 8},
                                                       {"attention.head_count", 4}}) {
      if (name != key) writer.number("llama." + name, size);
    }
    writer.number(std::string("llama.") + key, value);
    writer.floats("token_embd.weight", {2, 32}, std::vector<float>(64));
    return writer;
  };
  for (const char* key : {"block_count", "context_length", "embedding_length",
                          "feed_forward_length", "attention.head_count"}) {
    SCOPED_TRACE(key);
    const std::string named = std::string("llama.") + key;
    expect_refused(ErrorCode::corrupt, {named + ": 0, expected 1 to"}, with(key, uint32_t{0}));
    expect_refused(ErrorCode::corrupt, {named + ": 4294967295, expected 1 to"},
                   with(key, uint32_t{4294967295u}));
    expect_refused(ErrorCode::corrupt, {named + ": -5, expected 1 to"}, with(key, int64_t{-5}));
    expect_refused(ErrorCode::corrupt, {named}, with(key, 2.5f));
  }
  expect_refused(ErrorCode::corrupt, {"llama.block_count: 1025, at most 1024"},
                 with("block_count", uint32_t{1025}));
  expect_refused(ErrorCode::corrupt, {"not a finite number"},
                 with("rope.freq_base", std::numeric_limits<float>::quiet_NaN()));
  GgufWriter without_table;
  without_table.string("general.architecture", "llama").number("llama.block_count", uint32_t{1});
  without_table.number("llama.embedding_length", uint32_t{8});
  without_table.number("llama.attention.head_count", uint32_t{1});
  expect_refused(ErrorCode::corrupt, {"token_embd.weight is missing"}, without_table);
}

TEST_F(GgufConfig, LayersWithSizesOfTheirOwnAreRefusedAndEqualOnesRead) {
  GgufWriter writer;
  writer.string("general.architecture", "llama");
  for (const auto& [key, value] : std::vector<std::pair<std::string, uint32_t>>{
           {"block_count", 2}, {"context_length", 64}, {"embedding_length", 32}}) {
    writer.number("llama." + key, value);
  }
  writer.numbers("llama.attention.head_count", std::vector<uint32_t>{4, 4});
  writer.floats("token_embd.weight", {2, 32}, std::vector<float>(64));
  GgufWriter differing = writer;
  writer.numbers("llama.feed_forward_length", std::vector<int32_t>{48, 48});
  EXPECT_EQ(decoder(writer).intermediate_size, 48);
  differing.numbers("llama.feed_forward_length", std::vector<int32_t>{48, 64});
  expect_refused(ErrorCode::unsupported, {"feed_forward_length: layers that differ (48 and 64)"},
                 differing);
}

TEST_F(GgufConfig, GenerationDefaultsAreTheFilesRecommendation) {
  GgufWriter writer = small_file("llama");
  writer.number("tokenizer.ggml.bos_token_id", uint32_t{1});
  writer.number("tokenizer.ggml.eos_token_id", uint32_t{2});
  writer.number("tokenizer.ggml.eot_token_id", uint32_t{7});
  writer.number("tokenizer.ggml.eom_token_id", uint32_t{0xFFFFFFFF});  // none
  writer.number("general.sampling.temp", 0.6f).number("general.sampling.top_k", int32_t{20});
  directory_.write("model.gguf", writer.file());
  const GgufFile file(directory_.path() / "model.gguf");
  EXPECT_EQ(to_json(gguf_generation_config(file.metadata())),
            R"({"eos_token_id":[2,7],"bos_token_id":1,"temperature":0.6,"top_k":20})");
}

TEST_F(GgufConfig, PoolingTypesHaveSentenceTransformersNames) {
  const auto pooling = [&](std::optional<uint32_t> type) {
    GgufWriter writer = small_file("qwen3");
    if (type) writer.number("qwen3.pooling_type", *type);
    directory_.write("model.gguf", writer.file());
    return gguf_pooling(GgufFile(directory_.path() / "model.gguf").metadata());
  };
  EXPECT_EQ(pooling({}), std::nullopt);
  EXPECT_EQ(pooling(0), std::nullopt);
  EXPECT_EQ(pooling(1), "mean");
  EXPECT_EQ(pooling(2), "cls");
  EXPECT_EQ(pooling(3), "lasttoken");
  EXPECT_EQ(pooling(4), std::nullopt);  // a reranker's
  expect_error(ErrorCode::unsupported, {"qwen3.pooling_type", "5"}, [&] { pooling(5); });
}

// llama.cpp reads the key as this switch in files of Granite alone.
TEST_F(GgufConfig, GraniteWithoutRotationIsRefused) {
  for (const char* arch : {"granite", "granitemoe"}) {
    GgufWriter writer = small_file(arch);
    const std::string key = std::string(arch) + ".rope.scaling.finetuned";
    if (std::string(arch) == "granitemoe") {
      writer.number("granitemoe.expert_count", uint32_t{4});
      writer.number("granitemoe.expert_used_count", uint32_t{2});
    }
    expect_refused(ErrorCode::unsupported, {key, "layers that don't rotate"},
                   writer.boolean(key, false));
  }
  EXPECT_NO_THROW(decoder(small_file("granite").boolean("granite.rope.scaling.finetuned", true)));
  EXPECT_NO_THROW(decoder(small_file("qwen2").boolean("qwen2.rope.scaling.finetuned", false)));
}
}  // namespace
}  // namespace paceline
