// Granite 3 (transformers' modeling_granite, _granitemoe and _granitemoeshared): Llama's block with
// multipliers, or with these and a mixture of experts.
#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kGraniteDefaults = {.vocab_size = 32000, .num_heads = 32};

DecoderConfig read_multiplied_block(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kGraniteDefaults);
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
  names.shared = "shared_mlp";
  names.fused_shared = {.down = "output_linear", .gate_up = "input_linear"};
  return names;
}

}  // namespace

DecoderConfig read_granite(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_multiplied_block(config, weights);
  decoder.mlp_bias = config.boolean("mlp_bias", false);
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

}  // namespace paceline
