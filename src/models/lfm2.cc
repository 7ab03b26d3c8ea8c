// LFM2 and LFM2.5, dense and mixtures (transformers' modeling_lfm2 and _lfm2_moe): gated short
// convolutions, and some layers attention with norms of q and k.
#include <fmt/format.h>

#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kLfm2Defaults = {.vocab_size = 65536,
                                          .num_heads = 32,
                                          .num_kv_heads = 8,
                                          .intermediate_size = 12288,
                                          .max_position = 128000,
                                          .tied_head = true,
                                          .norm_eps_key = "norm_eps",
                                          .norm_eps = 1e-5};
constexpr CommonDefaults kLfm2MoeDefaults = {.vocab_size = 65536,
                                             .num_heads = 32,
                                             .num_kv_heads = 8,
                                             .intermediate_size = 7168,
                                             .max_position = 128000,
                                             .tied_head = true,
                                             .norm_eps_key = "norm_eps",
                                             .norm_eps = 1e-5};
const MlpNames kNumberedNames = {.gate = "w1", .up = "w3", .down = "w2"};

// Without `layer_types`, `full_attn_idxs` lists the layers that are attention; else all are.
std::vector<LayerConfig> read_lfm2_layers(const HfConfig& config) {
  std::vector<LayerConfig> layers = uniform_layers(read_num_layers(config), 0);
  if (read_mixers(config, {.name = "conv", .kind = MixerKind::convolution}, layers)) return layers;
  const auto listed = config.find("full_attn_idxs");
  if (!listed) return layers;
  for (LayerConfig& layer : layers) layer.mixer = MixerKind::convolution;
  for (const JsonCursor& item : listed->items()) {
    const auto index = static_cast<size_t>(item.integer({.min = 0, .max = 1 << 20}));
    if (index < layers.size()) layers[index].mixer = MixerKind::attention;
  }
  return layers;
}

// Inner columns of the MLPs, which are two thirds of the field's number in multiples of another.
int64_t read_inner_size(const HfConfig& config, int64_t intermediate_size) {
  int64_t size = config.integer("block_ff_dim", intermediate_size);
  if (!config.boolean("block_auto_adjust_ff_dim", true)) return size;
  size = 2 * size / 3;
  if (const auto factor = config.number_or_null("block_ffn_dim_multiplier", 1.0)) {
    const int64_t unit = config.integer("block_multiple_of", 256);
    size = static_cast<int64_t>(*factor * static_cast<double>(size));
    size = (size + unit - 1) / unit * unit;
  }
  constexpr int64_t kMostColumns = 1 << 22;
  if (size < 1 || size > kMostColumns) {
    config.invalid("intermediate_size",
                   fmt::format("{} columns by block_auto_adjust_ff_dim, expected 1 to {}", size,
                               kMostColumns));
  }
  return size;
}

DecoderConfig read_convolutional(const HfConfig& config, const WeightReader& weights,
                                 const CommonDefaults& defaults) {
  DecoderConfig decoder = read_common(config, weights, defaults);
  decoder.tied_head = config.boolean("tie_embedding", decoder.tied_head);
  decoder.qk_norm = QkNorm::head;
  decoder.attention_names = {
      .output = "out_proj", .q_norm = "q_layernorm", .k_norm = "k_layernorm"};
  decoder.norms = {.before_attention = "operator_norm", .before_mlp = "ffn_norm"};
  decoder.final_norm = "embedding_norm";
  decoder.mlp = "feed_forward";
  decoder.mlp_names = kNumberedNames;
  decoder.layers = read_lfm2_layers(config);
  decoder.convolution = {.taps = config.integer("conv_L_cache", 3),
                         .bias = config.boolean("conv_bias", false)};
  read_ropes(config, {{.default_theta = 1e6}}, decoder);
  return decoder;
}

// Files have the experts of a layer one by one, or stacked: then ExpertCheckpoint names their
// parts.
MixtureNames find_mixture_names(const WeightReader& weights, size_t layer) {
  MixtureNames names{.router = "feed_forward.gate",
                     .choice_bias = "feed_forward.expert_bias",
                     .experts = "feed_forward.experts"};
  const auto gate = fmt::format("layers.{}.{}.0.{}.weight", layer, names.experts, "gate_proj");
  if (!weights.contains(gate)) names.projections = kNumberedNames;
  return names;
}

}  // namespace

DecoderConfig read_lfm2(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_convolutional(config, weights, kLfm2Defaults);
  decoder.intermediate_size = read_inner_size(config, decoder.intermediate_size);
  return decoder;
}

// transformers divides by the sum of the chosen scores + 1e-6, which is that sum in all but the
// last bits of float32.
DecoderConfig read_lfm2_moe(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_convolutional(config, weights, kLfm2MoeDefaults);
  decoder.mixture =
      read_mixture(config, {.num_experts = 32, .experts_per_token = 4, .expert_size = 1792});
  RoutingParams& routing = decoder.mixture->routing;
  routing.score = ExpertScore::sigmoid;
  routing.normalise = config.boolean("norm_topk_prob", true);
  routing.scale = static_cast<float>(config.number("routed_scaling_factor", 1.0));
  decoder.mixture->has_choice_bias = config.boolean("use_expert_bias", true);
  if (weights.contains("layers.0.feed_forward.gate_proj.weight")) {  // mlx-lm's files
    decoder.mlp_names = MlpNames();
  }
  const auto dense = static_cast<size_t>(config.integer("num_dense_layers", 2));
  decoder.mixture->names = find_mixture_names(weights, dense);
  for (size_t i = dense; i < decoder.layers.size(); ++i) decoder.layers[i].is_mixture = true;
  return decoder;
}

}  // namespace paceline
