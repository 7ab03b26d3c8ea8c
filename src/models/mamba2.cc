// Mamba 2 (transformers' modeling_mamba2): every layer is one, without an MLP.
#include "models/family.h"
#include "models/mamba2_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kMamba2Defaults = {.vocab_size = 32768,
                                            .num_heads = 1,
                                            .num_kv_heads = 1,
                                            .head_dim = 64,
                                            .intermediate_size = 0,
                                            .max_position = 1 << 20,
                                            .norm_eps_key = "layer_norm_epsilon",
                                            .norm_eps = 1e-5};

}  // namespace

DecoderConfig read_mamba2_alone(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kMamba2Defaults);
  decoder.norms = {.before_attention = "norm", .before_mlp = ""};
  decoder.final_norm = "norm_f";
  decoder.activation = read_activation(config, "hidden_act", "silu");
  const LayerConfig layer = {.mixer = MixerKind::mamba2, .rope_index = kNoRope, .has_mlp = false};
  decoder.layers.assign(static_cast<size_t>(read_num_layers(config)), layer);
  const Mamba2Fields fields = {.heads = "num_heads",
                               .head_dim = "head_dim",
                               .groups = "n_groups",
                               .state_size = "state_size",
                               .taps = "conv_kernel",
                               .convolution_bias = "use_conv_bias",
                               .projection_bias = "use_bias",
                               .default_groups = 8,
                               .default_state_size = 128};
  read_mamba2(config, fields, config.integer("expand", 2) * decoder.hidden_size, decoder);
  decoder.mamba2->name = "mixer";
  return decoder;
}

}  // namespace paceline
