// Qwen's mixtures of experts (transformers' modeling_qwen2_moe and _qwen3_moe), and Mellum 2, which
// is Qwen 3's with windows and a rope of their own (modeling_mellum).
#include <fmt/format.h>

#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr int64_t kQwenMoeWindow = 4096;
constexpr CommonDefaults kQwen2MoeDefaults = {.num_kv_heads = 16, .max_position = 32768};
constexpr CommonDefaults kQwen3MoeDefaults = {.num_kv_heads = 4, .max_position = 32768};
constexpr CommonDefaults kMellumDefaults = {.vocab_size = 98304,
                                            .num_heads = 32,
                                            .num_kv_heads = 4,
                                            .head_dim = 128,
                                            .intermediate_size = 7168,
                                            .max_position = 131072};

std::optional<int64_t> read_qwen_moe_window(const HfConfig& config) {
  if (!config.boolean("use_sliding_window", false)) return std::nullopt;
  return config.integer_or_null("sliding_window", kQwenMoeWindow);
}

// Layers slide as layer_types says, else every second one of the first max_window_layers.
std::vector<LayerConfig> read_qwen2_moe_layers(const HfConfig& config) {
  const int64_t num_layers = read_num_layers(config);
  const auto window = read_qwen_moe_window(config);
  if (const auto sliding = read_sliding_layers(config, num_layers)) {
    return windowed_layers(config, *sliding, window);
  }
  const int64_t last = config.integer("max_window_layers");
  std::vector<bool> sliding;
  for (int64_t i = 0; i < num_layers; ++i) sliding.push_back(window && i < last && i % 2 == 0);
  return windowed_layers(config, sliding, window);
}

DecoderConfig read_qwen_moe(const HfConfig& config, const WeightReader& weights,
                            const CommonDefaults& defaults, const MixtureDefaults& mixture) {
  DecoderConfig decoder = read_common(config, weights, defaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.mixture = read_mixture(config, mixture);
  decoder.mixture->routing.normalise = config.boolean("norm_topk_prob", false);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

}  // namespace

DecoderConfig read_qwen2_moe(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder =
      read_qwen_moe(config, weights, kQwen2MoeDefaults,
                    {.num_experts = 60, .experts_per_token = 4, .expert_size = 1408});
  decoder.qkv_bias = config.boolean("qkv_bias", true);
  decoder.mixture->routing.shared = SharedExpert::gated;
  decoder.mixture->shared_size = config.integer("shared_expert_intermediate_size", 5632);
  decoder.layers = read_qwen2_moe_layers(config);
  mix_sparse_layers(config, decoder.layers);
  return decoder;
}

DecoderConfig read_qwen3_moe(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder =
      read_qwen_moe(config, weights, kQwen3MoeDefaults,
                    {.num_experts = 128, .experts_per_token = 8, .expert_size = 768});
  decoder.qk_norm = QkNorm::head;
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.layers =
      uniform_layers(read_num_layers(config), read_qwen_moe_window(config).value_or(0));
  mix_sparse_layers(config, decoder.layers);
  return decoder;
}

DecoderConfig read_mellum(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kWindow = 1024;
  DecoderConfig decoder = read_common(config, weights, kMellumDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.mixture =
      read_mixture(config, {.num_experts = 64, .experts_per_token = 8, .expert_size = 896});
  decoder.mixture->routing.normalise = config.boolean("norm_topk_prob", true);
  decoder.qk_norm = QkNorm::head;
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  const int64_t num_layers = read_num_layers(config);
  const std::vector<bool> none(static_cast<size_t>(num_layers), false);
  decoder.layers = windowed_layers(config, read_sliding_layers(config, num_layers).value_or(none),
                                   config.integer_or_null("sliding_window", kWindow));
  mix_sparse_layers(config, decoder.layers);  // of GGUF files
  mix_listed_layers(config, decoder.layers);
  read_ropes(config, {{.default_theta = 5e5}, {.layer_type = "sliding_attention", .scaled = false}},
             decoder);
  for (LayerConfig& layer : decoder.layers) layer.rope_index = layer.window > 0 ? 1 : 0;
  return decoder;
}

}  // namespace paceline
