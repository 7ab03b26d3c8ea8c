// Mixtures of experts with DeepSeek V3's router and shared experts, behind some dense layers: GLM
// 4.5, Sarvam 30B, K-EXAONE, Solar Open, dots.llm1 (transformers' modeling_glm4_moe, _exaone_moe,
// _solar_open, _dots1).
#include <fmt/format.h>

#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kGlmMoeDefaults = {
    .num_heads = 96, .num_kv_heads = 8, .max_position = 131072};
constexpr CommonDefaults kSolarOpenDefaults = {.vocab_size = 196608,
                                               .num_heads = 64,
                                               .num_kv_heads = 8,
                                               .head_dim = 128,
                                               .intermediate_size = 10240,  // of no layer
                                               .max_position = 131072,
                                               .norm_eps = 1e-5};
constexpr CommonDefaults kSarvamMoeDefaults = {.vocab_size = 262144,
                                               .num_heads = 64,
                                               .num_kv_heads = 4,
                                               .head_dim = 64,
                                               .intermediate_size = 8192,
                                               .max_position = 131072};
constexpr CommonDefaults kExaoneMoeDefaults = {.vocab_size = 102400,
                                               .num_heads = 32,
                                               .num_kv_heads = 32,
                                               .intermediate_size = 16384,
                                               .norm_eps = 1e-5,
                                               .hidden_size = 4096};
constexpr CommonDefaults kDotsDefaults = {
    .vocab_size = 152064, .num_heads = 32, .num_kv_heads = 32, .intermediate_size = 10944};

// With `num_shared` experts that every row has.
MixtureConfig read_deepseek_mixture(const HfConfig& config, const MixtureDefaults& defaults,
                                    int64_t num_shared, const GroupedDefaults& routing = {}) {
  MixtureConfig mixture = read_mixture(config, defaults);
  read_grouped_routing(config, routing, mixture.routing);
  mixture.has_choice_bias = true;
  if (num_shared > 0) {
    mixture.routing.shared = SharedExpert::plain;
    mixture.shared_size = num_shared * mixture.expert_size;
    mixture.names.shared = "mlp.shared_experts";
  }
  return mixture;
}

void mix_layers_from(int64_t first, std::vector<LayerConfig>& layers) {
  for (auto i = static_cast<size_t>(first); i < layers.size(); ++i) layers[i].is_mixture = true;
}

// The layers from max_window_layers on slide, unless layer_types lists them.
std::vector<LayerConfig> read_dots_layers(const HfConfig& config) {
  constexpr int64_t kWindow = 4096, kFirst = 62;
  const int64_t num_layers = read_num_layers(config);
  const auto window = config.integer_or_null("sliding_window", kWindow);
  const int64_t first = config.integer("max_window_layers", kFirst);
  std::vector<bool> sliding;
  for (int64_t i = 0; i < num_layers; ++i) sliding.push_back(window && i >= first);
  return windowed_layers(config, read_sliding_layers(config, num_layers).value_or(sliding), window);
}

}  // namespace

DecoderConfig read_glm4_moe(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kGlmMoeDefaults);
  decoder.norm_eps = static_cast<float>(config.number("rms_norm_eps", 1e-5));
  decoder.activation = read_activation(config, "hidden_act", "silu");
  if (config.boolean("use_qk_norm", false)) decoder.qk_norm = QkNorm::head;
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  // The layers that predict further tokens come after these; they aren't used.
  const std::string_view key =
      config.has("num_mtp_layers") ? "num_mtp_layers" : "num_nextn_predict_layers";
  decoder.num_unused_layers = config.integer(key, 1);

  decoder.mixture = read_deepseek_mixture(config,
                                          {.experts_key = "n_routed_experts",
                                           .num_experts = 128,
                                           .experts_per_token = 8,
                                           .expert_size = 1408},
                                          config.integer("n_shared_experts", 1));
  mix_layers_from(config.integer("first_k_dense_replace", 1), decoder.layers);
  read_ropes(config, {{.rotates_part = true, .default_share = 0.5}}, decoder);
  return decoder;
}

DecoderConfig read_sarvam_moe(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kSarvamMoeDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  if (config.boolean("use_qk_norm", true)) decoder.qk_norm = QkNorm::head;
  const std::string_view bias = config.has("use_qkv_bias") ? "use_qkv_bias" : "attention_bias";
  decoder.qkv_bias = config.boolean(bias, false);
  decoder.fused_qkv = weights.contains("layers.0.self_attn.qkv_proj.weight");  // as published
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_unused_layers(config, 0, decoder);
  const std::string_view shared =
      config.has("num_shared_experts") ? "num_shared_experts" : "n_shared_experts";
  decoder.mixture = read_deepseek_mixture(config,
                                          {.experts_key = "n_routed_experts",
                                           .num_experts = 128,
                                           .experts_per_token = 6,
                                           .expert_size = 1024},
                                          config.integer(shared, 1), {.scale = 2.5});
  mix_layers_from(config.integer("first_k_dense_replace", 1), decoder.layers);
  read_ropes(config, {{.default_theta = 8e6, .rotates_part = true}}, decoder);
  return decoder;
}

// EXAONE 4's windows and rope behind Llama's norms.
DecoderConfig read_exaone_moe(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kExaoneMoeDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qk_norm = QkNorm::head;
  decoder.layers = read_exaone_layers(config);
  decoder.mixture = read_deepseek_mixture(
      config, {.num_experts = 64, .experts_per_token = 8, .expert_size = 1024},
      config.integer("num_shared_experts", 1), {.scale = 2.5});
  const int64_t first = config.integer("first_k_dense_replace", 1);
  mix_layers_from(first, decoder.layers);
  mix_listed_layers(config, decoder.layers);
  // The names of published files, and of those that transformers 5 writes as it holds them.
  const std::string published = "mlp.e_score_correction_bias";
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    if (!weights.contains(fmt::format("layers.{}.{}", i, published))) continue;
    decoder.mixture->names.choice_bias = published;
  }
  read_ropes(config, {{}}, decoder);
  return decoder;
}

DecoderConfig read_solar_open(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kSolarOpenDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  decoder.mixture = read_deepseek_mixture(config,
                                          {.experts_key = "n_routed_experts",
                                           .num_experts = 128,
                                           .experts_per_token = 8,
                                           .expert_size = 1280},
                                          config.integer("n_shared_experts", 1));
  mix_all_layers(decoder.layers);
  read_ropes(config, {{.default_theta = 1e6}}, decoder);
  return decoder;
}

DecoderConfig read_dots1(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kDotsDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qk_norm = QkNorm::head;
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.layers = read_dots_layers(config);
  decoder.mixture =
      read_deepseek_mixture(config, {.experts_key = "n_routed_experts", .expert_size = 1408},
                            config.integer("n_shared_experts"));
  decoder.mixture->routing.normalise = config.boolean("norm_topk_prob", false);
  mix_layers_from(config.integer("first_k_dense_replace", 0), decoder.layers);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

}  // namespace paceline
