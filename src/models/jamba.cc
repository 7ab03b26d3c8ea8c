// Jamba (transformers' modeling_jamba): Mamba 1 whose time steps, B and C are normalised, and some
// layers attention that doesn't rotate; MLPs and mixtures of experts.
#include <fmt/format.h>

#include "models/family.h"
#include "models/mamba1_fields.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kJambaDefaults = {.vocab_size = 65536,
                                           .num_heads = 32,
                                           .num_kv_heads = 8,
                                           .intermediate_size = 14336,
                                           .max_position = 262144,
                                           .norm_eps = 1e-6};

// Every so many layers one is of a kind.
struct LayerPattern {
  std::string_view period_key;
  std::string_view offset_key;
  int64_t period;  // the defaults
  int64_t offset;
};

std::vector<bool> read_layer_pattern(const HfConfig& config, const LayerPattern& pattern) {
  const int64_t period = config.integer(pattern.period_key, pattern.period);
  const int64_t offset = config.integer(pattern.offset_key, pattern.offset);
  if (offset >= period) {
    config.invalid(pattern.offset_key, fmt::format("{}, expected less than the {} of {}", offset,
                                                   period, pattern.period_key));
  }
  std::vector<bool> layers;
  for (int64_t i = 0; i < read_num_layers(config); ++i) layers.push_back(i % period == offset);
  return layers;
}

}  // namespace

DecoderConfig read_jamba(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kJambaDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.norms = {.before_attention = "input_layernorm", .before_mlp = "pre_ff_layernorm"};
  decoder.final_norm = "final_layernorm";
  decoder.mlp = "feed_forward";
  const auto attention = read_layer_pattern(config, {.period_key = "attn_layer_period",
                                                     .offset_key = "attn_layer_offset",
                                                     .period = 8,
                                                     .offset = 4});
  const auto mixtures = read_layer_pattern(config, {.period_key = "expert_layer_period",
                                                    .offset_key = "expert_layer_offset",
                                                    .period = 2,
                                                    .offset = 1});
  const MixtureConfig mixture = read_mixture(
      config, {.size_key = "intermediate_size", .num_experts = 16, .experts_per_token = 2});
  const bool has_experts = mixture.routing.num_experts > 1;
  for (size_t i = 0; i < attention.size(); ++i) {
    decoder.layers.push_back({.mixer = attention[i] ? MixerKind::attention : MixerKind::mamba1,
                              .rope_index = kNoRope,
                              .is_mixture = has_experts && mixtures[i]});
    if (!decoder.layers.back().is_mixture) continue;
    decoder.mixture = mixture;
    decoder.mixture->names.router = "feed_forward.router";
    decoder.mixture->names.experts = "feed_forward.experts";
  }
  read_mamba1(config,
              {.expand = "mamba_expand",
               .state_size = "mamba_d_state",
               .step_rank = "mamba_dt_rank",
               .taps = "mamba_d_conv",
               .convolution_bias = "mamba_conv_bias",
               .projection_bias = "mamba_proj_bias"},
              decoder);
  if (!decoder.mamba1) return decoder;
  decoder.mamba1->norms = StepNorms::weighted;
  decoder.mamba1->norm_eps = decoder.norm_eps;
  return decoder;
}

}  // namespace paceline
