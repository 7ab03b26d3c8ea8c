// Phi 3.5 MoE (transformers' modeling_phimoe): Mixtral's block with layer norms and biases, a
// router that mixes sparsely, and a rope whose angles have a factor of each range of lengths.
#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kPhiMoeDefaults = {.vocab_size = 32064,
                                            .num_heads = 32,
                                            .num_kv_heads = 8,
                                            .intermediate_size = 6400,
                                            .max_position = 131072,
                                            .norm_eps = 1e-5,
                                            .hidden_size = 4096};

}  // namespace

DecoderConfig read_phimoe(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kPhiMoeDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  use_layer_norms(decoder);
  decoder.qkv_bias = decoder.output_bias = config.boolean("attention_bias", false);
  decoder.head_bias = config.boolean("lm_head_bias", false);
  decoder.mixture = read_mixture(config, {.size_key = "intermediate_size",
                                          .num_experts = 16,
                                          .experts_per_token = 2,
                                          .expert_size = kPhiMoeDefaults.intermediate_size});
  RoutingParams& routing = decoder.mixture->routing;
  routing.score = ExpertScore::sparse_mixer;
  routing.jitter = static_cast<float>(config.number("router_jitter_noise", 0.01));
  decoder.mixture->names = mixtral_names(weights);
  decoder.layers = uniform_layers(read_num_layers(config), read_optional_window(config));
  mix_all_layers(decoder.layers);
  read_ropes(config,
             {{.default_theta = 1e6, .every_scaling_is_longrope = true, .has_mscales = true}},
             decoder);
  return decoder;
}

}  // namespace paceline
