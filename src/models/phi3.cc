// Phi 3 and 4 (transformers' modeling_phi3): Llama's block, stored with fused projections; a part
// of each head may rotate, with LongRoPE's frequencies.
#include "models/family.h"

namespace paceline {

DecoderConfig read_phi3(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder =
      read_common(config, weights,
                  {.vocab_size = 32064, .num_heads = 32, .max_position = 4096, .norm_eps = 1e-5});
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.fused_qkv = true;
  decoder.fused_gate_up = true;
  decoder.layers = uniform_layers(read_num_layers(config), read_optional_window(config));
  read_ropes(
      config,
      {{.rotates_part = true, .default_original_context = 4096, .every_scaling_is_longrope = true}},
      decoder);
  return decoder;
}

}  // namespace paceline
