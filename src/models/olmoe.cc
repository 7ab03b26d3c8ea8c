// OLMoE (transformers' modeling_olmoe): Llama's block with norms over the whole of q and k, and a
// mixture of experts.
#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {

DecoderConfig read_olmoe(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, {.max_position = 4096});
  decoder.clip_qkv = read_clip(config);
  decoder.norm_eps = static_cast<float>(config.number("rms_norm_eps", 1e-5));
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qk_norm = QkNorm::width;
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.mixture = read_mixture(
      config, {.size_key = "intermediate_size", .num_experts = 64, .experts_per_token = 8});
  decoder.mixture->routing.normalise = config.boolean("norm_topk_prob", false);
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  mix_all_layers(decoder.layers);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

}  // namespace paceline
