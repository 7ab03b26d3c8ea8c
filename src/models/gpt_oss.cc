// gpt-oss (transformers' modeling_gpt_oss): attention sinks, every second layer with a window, and
// mixtures of experts with biases.
#include <fmt/format.h>

#include <cmath>

#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kGptOssDefaults = {
    .num_heads = 64, .num_kv_heads = 8, .head_dim = 64, .max_position = 131072};
constexpr int64_t kGptOssWindow = 128;
constexpr double kGptOssTheta = 150000.0;

// The activation has these numbers (Activation::clamped_swiglu).
void check_activation(const HfConfig& config) {
  for (const auto& [key, expected] :
       {std::pair{"swiglu_limit", 7.0}, std::pair{"swiglu_alpha", 1.702}}) {
    const double found = config.number(key, expected);
    if (found != expected) {
      config.unsupported(key, fmt::format("{} isn't supported; {} is", found, expected));
    }
  }
}

std::vector<LayerConfig> read_gpt_oss_layers(const HfConfig& config) {
  const int64_t num_layers = read_num_layers(config);
  const auto window = config.integer_or_null("sliding_window", kGptOssWindow);
  if (const auto sliding = read_sliding_layers(config, num_layers)) {
    return windowed_layers(config, *sliding, window);
  }
  std::vector<bool> sliding;
  for (int64_t i = 0; i < num_layers; ++i) sliding.push_back(i % 2 == 0);
  return windowed_layers(config, sliding, window);
}

// The rope of configs without one.
void stretch_rope(DecoderConfig& decoder) {
  constexpr double kFactor = 32.0;
  RopeConfig& rope = decoder.ropes.front();
  rope.scaling = RopeScaling::yarn;
  rope.factor = kFactor;
  rope.original_max_position = 4096;
  rope.whole_dimensions = false;
  rope.attention_factor = 1.0 + 0.1 * std::log(kFactor);
}

}  // namespace

DecoderConfig read_gpt_oss(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kGptOssDefaults);
  decoder.norm_eps = static_cast<float>(config.number("rms_norm_eps", 1e-5));
  check_activation(config);
  decoder.activation = Activation::clamped_swiglu;
  decoder.qkv_bias = config.boolean("attention_bias", true);
  decoder.output_bias = decoder.qkv_bias;
  decoder.attention_sinks = true;
  decoder.layers = read_gpt_oss_layers(config);
  mix_all_layers(decoder.layers);

  decoder.mixture = read_mixture(
      config, {.size_key = "intermediate_size", .num_experts = 128, .experts_per_token = 4});
  MixtureConfig& mixture = *decoder.mixture;
  mixture.routing.normalise = true;  // a softmax over the chosen logits
  mixture.router_bias = true;
  mixture.expert_bias = true;
  mixture.names.router = "mlp.router";
  read_ropes(config, {{.default_theta = kGptOssTheta}}, decoder);
  if (!describes_rope(config)) stretch_rope(decoder);
  return decoder;
}

}  // namespace paceline
