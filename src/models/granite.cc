// Granite 3 and 4 (transformers' modeling_granite, _granitemoe, _granitemoeshared and
// _granitemoehybrid): Llama's block with multipliers, or with these and a mixture of experts;
// Granite Swash (_granite_swa, _granitemoe_swa) with windows and attention sinks. HyperCLOVA X
// (modeling_hyperclovax).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/family.h"
#include "models/mamba2_fields.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kGraniteDefaults = {.vocab_size = 32000, .num_heads = 32};

constexpr CommonDefaults kSwashDefaults = {.vocab_size = 100352,
                                           .num_heads = 20,
                                           .num_kv_heads = 4,
                                           .intermediate_size = 8192,
                                           .max_position = 8192,
                                           .tied_head = true,
                                           .norm_eps = 1e-5,
                                           .hidden_size = 2560};

constexpr std::string_view kSharedMlp = "shared_mlp";
const MlpNames kFusedShared = {.down = "output_linear", .gate_up = "input_linear"};

DecoderConfig read_multiplied_block(const HfConfig& config, const WeightReader& weights,
                                    const CommonDefaults& defaults = kGraniteDefaults) {
  DecoderConfig decoder = read_common(config, weights, defaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.embedding_scale = static_cast<float>(config.number("embedding_multiplier"));
  decoder.attention_scale = static_cast<float>(config.number("attention_multiplier"));
  decoder.residual_scale = static_cast<float>(config.number("residual_multiplier"));
  decoder.logits_scale = static_cast<float>(1.0 / config.number("logits_scaling"));
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

// Files of transformers 4 and 5 have different names for the router; GGUF files made into
// checkpoints call the mixture mlp. The shared expert's gate and up are one matrix but in the last.
MixtureNames find_granite_names(const WeightReader& weights) {
  MixtureNames names;
  if (weights.contains("layers.0.mlp.gate.weight")) return names;
  const std::string block = "block_sparse_moe";
  names.experts = block + ".experts";
  names.router = block + ".router";
  if (weights.contains("layers.0." + names.router + ".layer.weight")) names.router += ".layer";
  names.shared = std::string(kSharedMlp);
  names.fused_shared = kFusedShared;
  return names;
}

// Files of transformers have one matrix for gate and up; mlx-lm writes two, with the usual names.
void name_dense_mlp(const WeightReader& weights, DecoderConfig& decoder) {
  if (weights.contains("layers.0.mlp.gate_proj.weight")) return;
  decoder.mlp = std::string(kSharedMlp);
  decoder.mlp_names = kFusedShared;
  decoder.fused_gate_up = true;
}

// Without the list all layers are Mamba's.
std::vector<LayerConfig> read_granite_layers(const HfConfig& config) {
  std::vector<LayerConfig> layers = uniform_layers(read_num_layers(config), 0);
  const MixerName mamba{.name = "linear_attention", .old_name = "mamba", .kind = MixerKind::mamba2};
  if (read_mixers(config, mamba, layers)) return layers;
  for (LayerConfig& layer : layers) layer.mixer = MixerKind::mamba2;
  return layers;
}

// A rope for each theta of `layer_rope_theta`; a layer with 0 doesn't rotate.
void read_layer_ropes(const HfConfig& config, DecoderConfig& decoder) {
  constexpr std::string_view kKey = "layer_rope_theta";
  const auto listed = config.find(kKey);
  if (!listed) return;
  const auto thetas = listed->items();
  if (thetas.size() != decoder.layers.size()) {
    config.invalid(kKey,
                   fmt::format("{} entries for {} layers", thetas.size(), decoder.layers.size()));
  }
  const RopeConfig rope = decoder.ropes.front();
  decoder.ropes.clear();
  for (size_t i = 0; i < thetas.size(); ++i) {
    const double theta = thetas[i].number({.min = 0, .max = 1e15});
    if (theta == 0) {
      decoder.layers[i].rope_index = kNoRope;
      continue;
    }
    const auto at = std::ranges::find(decoder.ropes, theta, &RopeConfig::theta);
    decoder.layers[i].rope_index = static_cast<int>(at - decoder.ropes.begin());
    if (at != decoder.ropes.end()) continue;
    decoder.ropes.push_back(rope);
    decoder.ropes.back().theta = theta;
  }
}

// Windows in all but every fourth layer, from the first one on, and attention sinks.
void read_swash_layers(const HfConfig& config, DecoderConfig& decoder) {
  constexpr int64_t kWindow = 128;
  constexpr size_t kPattern = 4;
  std::vector<bool> sliding;
  for (size_t i = 0; i < decoder.layers.size(); ++i) sliding.push_back(i % kPattern != 0);
  const auto listed = read_sliding_layers(config, std::ssize(decoder.layers));
  const std::vector<LayerConfig> windowed = windowed_layers(
      config, listed.value_or(sliding), config.integer_or_null("sliding_window", kWindow));
  for (size_t i = 0; i < windowed.size(); ++i) decoder.layers[i].window = windowed[i].window;
  decoder.attention_sinks = true;
  read_layer_ropes(config, decoder);
}

}  // namespace

DecoderConfig read_granite(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_multiplied_block(config, weights);
  decoder.mlp_bias = config.boolean("mlp_bias", false);
  return decoder;
}

// Granite's block with norms behind attention and MLP; the logits are multiplied, not divided.
DecoderConfig read_hyperclovax(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_granite(config, weights);
  if (!config.has("attention_multiplier")) {
    decoder.attention_scale = 1.0f / std::sqrt(static_cast<float>(decoder.head_dim));
  }
  decoder.logits_scale = static_cast<float>(config.number("logits_scaling"));
  if (config.boolean("use_post_norm", true)) {
    decoder.norms.after_attention = "post_norm1";
    decoder.norms.after_mlp = "post_norm2";
  }
  return decoder;
}

DecoderConfig read_granite_moe(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_multiplied_block(config, weights);
  decoder.mixture = read_mixture(
      config, {.size_key = "intermediate_size", .num_experts = 8, .experts_per_token = 2});
  decoder.mixture->routing.normalise = true;  // a softmax over the chosen logits
  decoder.mixture->names = find_granite_names(weights);
  mix_all_layers(decoder.layers);
  return decoder;
}

DecoderConfig read_granite_moe_shared(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_granite_moe(config, weights);
  MixtureConfig& mixture = *decoder.mixture;
  mixture.shared_size = config.integer("shared_intermediate_size", 0);
  if (mixture.shared_size > 0) mixture.routing.shared = SharedExpert::plain;
  return decoder;
}

DecoderConfig read_granite_swa(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_multiplied_block(config, weights, kSwashDefaults);
  decoder.mlp_bias = config.boolean("mlp_bias", false);
  read_swash_layers(config, decoder);
  return decoder;
}

DecoderConfig read_granite_moe_swa(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_granite_moe_shared(config, weights);
  read_swash_layers(config, decoder);
  return decoder;
}

DecoderConfig read_granite_moe_hybrid(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kDefaultSharedSize = 1024;
  const int64_t shared_size = config.integer("shared_intermediate_size", kDefaultSharedSize);
  DecoderConfig decoder;
  if (config.integer("num_local_experts", 8) > 0) {
    decoder = read_granite_moe(config, weights);
    decoder.mixture->shared_size = shared_size;
    decoder.mixture->routing.shared = SharedExpert::plain;
  } else {
    decoder = read_multiplied_block(config, weights);
    decoder.intermediate_size = shared_size;
    name_dense_mlp(weights, decoder);
  }
  const bool is_mixture = decoder.mixture.has_value();
  decoder.layers = read_granite_layers(config);
  if (is_mixture) mix_all_layers(decoder.layers);
  read_mamba2(config, {}, read_expanded_size(config, decoder.hidden_size), decoder);
  if (config.string("position_embedding_type", "") != "rope") {
    for (LayerConfig& layer : decoder.layers) layer.rope_index = kNoRope;
  }
  return decoder;
}

}  // namespace paceline
