// Mamba and Falcon Mamba (transformers' modeling_mamba and modeling_falcon_mamba): every layer is
// Mamba 1, without an MLP.
#include "models/family.h"
#include "models/mamba1_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kMamba1Defaults = {.vocab_size = 50280,
                                            .num_heads = 1,
                                            .num_kv_heads = 1,
                                            .head_dim = 64,
                                            .intermediate_size = 0,
                                            .max_position = 1 << 20,
                                            .tied_head = true,
                                            .norm_eps_key = "layer_norm_epsilon",
                                            .norm_eps = 1e-5};

}  // namespace

DecoderConfig read_mamba(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kMamba1Defaults);
  decoder.norms = {.before_attention = "norm", .before_mlp = ""};
  decoder.final_norm = "norm_f";
  decoder.activation = read_activation(config, "hidden_act", "silu");
  const LayerConfig layer = {.mixer = MixerKind::mamba1, .rope_index = kNoRope, .has_mlp = false};
  decoder.layers.assign(static_cast<size_t>(read_num_layers(config)), layer);
  read_mamba1(config,
              {.expand = "expand",
               .state_size = "state_size",
               .step_rank = "time_step_rank",
               .taps = "conv_kernel",
               .convolution_bias = "use_conv_bias",
               .projection_bias = "use_bias"},
              decoder);
  decoder.mamba1->name = "mixer";
  return decoder;
}

DecoderConfig read_falcon_mamba(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_mamba(config, weights);
  decoder.mamba1->norms = StepNorms::unit;
  decoder.mamba1->norm_eps = static_cast<float>(config.number("mixer_rms_eps", 1e-6));
  return decoder;
}

}  // namespace paceline
