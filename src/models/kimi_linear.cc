// Kimi Linear (transformers' modeling_kimi_linear): Kimi delta attention, in some layers multi-head
// latent attention without a rope, and mixtures of experts as DeepSeek V3's behind some dense
// layers.
#include <fmt/format.h>

#include <initializer_list>

#include "models/latent_fields.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kKimiDefaults = {.vocab_size = 163840,
                                          .num_heads = 32,
                                          .head_dim = 64,  // of no part of the model
                                          .intermediate_size = 9216,
                                          .max_position = 1048576,
                                          .norm_eps = 1e-5};
constexpr size_t kKimiInterval = 4;
constexpr std::string_view kKimiStates = "linear_attn_config";

// transformers takes either name of a field, and writes the first one.
std::string_view either(const HfConfig& config, std::string_view name, std::string_view other) {
  return config.has(name) || !config.has(other) ? name : other;
}

// Sets the mixer of the layers that a list of numbers from 1 has; each must be in one list.
void set_listed_mixers(const HfConfig& states, std::string_view key, MixerKind kind,
                       std::vector<LayerConfig>& layers) {
  const auto numbers = states.find(key);
  if (!numbers) states.invalid(key, "missing, expected the numbers of layers, from 1 on");
  for (const JsonCursor& item : numbers->items()) {
    const auto most = static_cast<double>(layers.size());
    LayerConfig& layer = layers[static_cast<size_t>(item.integer({.min = 1, .max = most})) - 1];
    if (layer.mixer != MixerKind::none) {
      item.fail(ErrorCode::invalid, "found a layer that is listed before, expected each once");
    }
    layer.mixer = kind;
  }
}

// Of `layer_types`, else of the lists beside the sizes of states; without both, every fourth layer
// after the first one is attention.
void read_kimi_mixers(const HfConfig& config, std::vector<LayerConfig>& layers) {
  if (read_mixers(config, {.name = "linear_attention", .kind = MixerKind::delta_net}, layers)) {
    return;
  }
  const auto found = config.find(kKimiStates);
  const bool is_listed =
      found && (found->contains("kda_layers") || found->contains("full_attn_layers"));
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool is_attention = i > 0 && i % kKimiInterval == 0;
    layers[i].mixer = is_listed      ? MixerKind::none
                      : is_attention ? MixerKind::attention
                                     : MixerKind::delta_net;
  }
  if (!is_listed) return;
  const HfConfig states(*found);
  set_listed_mixers(states, "kda_layers", MixerKind::delta_net, layers);
  set_listed_mixers(states, "full_attn_layers", MixerKind::attention, layers);
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].mixer != MixerKind::none) continue;
    states.invalid("kda_layers", fmt::format("layer {} is neither in this list nor in "
                                             "full_attn_layers, expected it in one",
                                             i + 1));
  }
}

// Fields of Kimi K3, whose blocks have further parts.
void refuse_further_parts(const HfConfig& config, const HfConfig* states) {
  constexpr std::string_view kReason = "isn't supported: this part of Kimi K3 isn't computed";
  for (const std::string_view key : {"attn_res_block_size", "routed_expert_hidden_size"}) {
    if (config.has(key)) config.unsupported(key, kReason);
  }
  if (config.boolean("mla_use_output_gate", false)) {
    config.unsupported("mla_use_output_gate", kReason);
  }
  if (states == nullptr) return;
  if (states->has("gate_lower_bound")) states->unsupported("gate_lower_bound", kReason);
  if (states->boolean("use_full_rank_gate", false)) {
    states->unsupported("use_full_rank_gate", kReason);
  }
}

DeltaNetConfig read_kimi_delta(const HfConfig& config, const DecoderConfig& decoder) {
  const auto found = config.find(kKimiStates);
  const auto states = found ? std::optional<HfConfig>(*found) : std::nullopt;
  refuse_further_parts(config, states ? &*states : nullptr);
  const auto size = [&](std::string_view key, std::string_view outer, int64_t otherwise) {
    return states && states->has(key) ? states->integer(key) : config.integer(outer, otherwise);
  };
  const int64_t heads = size("num_heads", "linear_num_heads", 32);
  const int64_t head_dim = size("head_dim", "linear_head_dim", 128);
  return {.key_heads = heads,
          .value_heads = heads,
          .key_dim = head_dim,
          .value_dim = head_dim,
          .taps = size("short_conv_kernel_size", "linear_conv_kernel_dim", 4),
          .activation = decoder.activation,
          .gate = Activation::sigmoid,
          .channel_decay = true,
          .gate_rank = head_dim,
          .projections = DeltaProjections::low_rank,
          .has_split_convolution = true,
          .name = "self_attn",
          .norm = "o_norm",
          .output = "o_proj"};
}

// Mixtures are called block_sparse_moe, in GGUF files read as checkpoints mlp. transformers 5.24
// writes dense layers under the former name, too.
void find_kimi_names(const WeightReader& weights, DecoderConfig& decoder) {
  constexpr std::string_view kSparse = "block_sparse_moe";
  const auto is_sparse = [&](size_t layer, std::string_view part) {
    return weights.contains(fmt::format("layers.{}.{}.{}.weight", layer, kSparse, part));
  };
  MixtureNames& names = decoder.mixture->names;
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    if (!decoder.layers[i].is_mixture) {
      if (is_sparse(i, "gate_proj")) decoder.mlp = kSparse;
      continue;
    }
    if (!is_sparse(i, "gate")) continue;
    names.router = fmt::format("{}.gate", kSparse);
    names.choice_bias = names.router + ".e_score_correction_bias";
    names.experts = fmt::format("{}.experts", kSparse);
    names.shared = fmt::format("{}.shared_experts", kSparse);
    names.projections = {.gate = "w1", .up = "w3", .down = "w2"};
  }
}

// Its scores are sigmoids in transformers, whatever moe_router_activation_func says.
MixtureConfig read_kimi_experts(const HfConfig& config) {
  const std::string score = config.string("moe_router_activation_func", "sigmoid");
  if (score != "sigmoid") {
    config.unsupported("moe_router_activation_func",
                       fmt::format("{} isn't supported; sigmoid is", shown_text(score)));
  }
  MixtureConfig mixture = read_deepseek_experts(
      config,
      {.mixture = {.chosen_key = either(config, "num_experts_per_token", "num_experts_per_tok"),
                   .num_experts = 256,
                   .experts_per_token = 8,
                   .expert_size = 1024},
       .routing = {.scale = 2.446,
                   .groups_key = either(config, "num_expert_group", "n_group"),
                   .normalise_key = either(config, "moe_renormalize", "norm_topk_prob")},
       .shared_key = either(config, "num_shared_experts", "n_shared_experts")});
  mixture.has_choice_bias = true;
  return mixture;
}

}  // namespace

DecoderConfig read_kimi_linear(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kKimiDefaults);
  decoder.max_position = config.integer(
      either(config, "model_max_length", "max_position_embeddings"), kKimiDefaults.max_position);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  for (LayerConfig& layer : decoder.layers) layer.rope_index = kNoRope;
  read_kimi_mixers(config, decoder.layers);
  read_latent_attention(config, {.query_rank = {}, .has_rope = false}, decoder);
  decoder.delta_net = read_kimi_delta(config, decoder);
  decoder.mixture = read_kimi_experts(config);
  mix_layers_behind(config, 1, decoder.layers);
  mix_listed_layers(config, decoder.layers);
  read_unused_layers(config, 0, decoder);
  find_kimi_names(weights, decoder);
  return decoder;
}

}  // namespace paceline
