#include "models/mixture_fields.h"

#include <fmt/format.h>

namespace paceline {

MixtureConfig read_mixture(const HfConfig& config, const MixtureDefaults& defaults) {
  MixtureConfig mixture;
  RoutingParams& routing = mixture.routing;
  // transformers takes either name, and writes one or the other.
  const std::string_view key = config.has("num_experts") ? "num_experts" : defaults.experts_key;
  routing.num_experts = config.integer(key, defaults.num_experts);
  routing.experts_per_token = config.integer(defaults.chosen_key, defaults.experts_per_token);
  mixture.expert_size = config.integer(defaults.size_key, defaults.expert_size);
  if (routing.experts_per_token > routing.num_experts) {
    config.invalid(defaults.chosen_key,
                   fmt::format("{} of {} experts", routing.experts_per_token, routing.num_experts));
  }
  return mixture;
}

// Files of transformers call the mixture block_sparse_moe, GGUF files read as checkpoints and those
// of transformers 5 mlp. mlx-lm's have another name for the experts' projections.
MixtureNames mixtral_names(const WeightReader& weights) {
  MixtureNames names;
  names.choice_bias = weights.contains("layers.0.mlp.gate.e_score_correction_bias")
                          ? "mlp.gate.e_score_correction_bias"
                          : "mlp.e_score_correction_bias";
  if (weights.contains("layers.0.mlp.gate.weight")) return names;
  if (weights.contains("layers.0.mlp.router.weight")) {
    names.router = "mlp.router";
    return names;
  }
  names.choice_bias = "block_sparse_moe.e_score_correction_bias";
  names.router = "block_sparse_moe.gate";
  names.experts = "block_sparse_moe.experts";
  const std::string gate = "layers.0." + names.experts + ".0.gate_proj.weight";
  if (!weights.contains(gate)) names.projections = {.gate = "w1", .up = "w3", .down = "w2"};
  return names;
}

void mix_all_layers(std::vector<LayerConfig>& layers) {
  for (LayerConfig& layer : layers) layer.is_mixture = true;
}

void mix_sparse_layers(const HfConfig& config, std::vector<LayerConfig>& layers) {
  const auto step = static_cast<size_t>(config.integer("decoder_sparse_step", 1));
  for (size_t i = 0; i < layers.size(); ++i) layers[i].is_mixture = (i + 1) % step == 0;
  const auto dense = config.find("mlp_only_layers");
  if (!dense) return;
  for (const JsonCursor& item : dense->items()) {
    const auto index = static_cast<size_t>(item.integer({.min = 0, .max = 1 << 20}));
    if (index < layers.size()) layers[index].is_mixture = false;
  }
}

void mix_listed_layers(const HfConfig& config, std::vector<LayerConfig>& layers) {
  constexpr std::string_view kKey = "mlp_layer_types";
  const auto found = config.find(kKey);
  if (!found) return;
  const auto types = found->items();
  if (types.size() != layers.size()) {
    config.invalid(kKey, fmt::format("{} entries for {} layers", types.size(), layers.size()));
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string& kind = types[i].string();
    if (kind != "sparse" && kind != "dense") {
      types[i].fail(ErrorCode::unsupported,
                    fmt::format("{} isn't supported; sparse and dense are", shown_text(kind)));
    }
    layers[i].is_mixture = kind == "sparse";
  }
}

void read_grouped_routing(const HfConfig& config, const GroupedDefaults& defaults,
                          RoutingParams& routing) {
  routing.score = ExpertScore::sigmoid;
  routing.normalise = config.boolean(defaults.normalise_key, defaults.normalise);
  routing.scale = static_cast<float>(config.number("routed_scaling_factor", defaults.scale));
  routing.num_groups = config.integer(defaults.groups_key, defaults.num_groups);
  routing.groups_kept = config.integer("topk_group", defaults.groups_kept);
  if (routing.num_experts % routing.num_groups != 0) {
    config.invalid(defaults.groups_key,
                   fmt::format("{} groups of {} experts", routing.num_groups, routing.num_experts));
  }
  const int64_t size = routing.num_experts / routing.num_groups;
  if (routing.groups_kept > routing.num_groups ||
      routing.groups_kept * size < routing.experts_per_token) {
    config.invalid(
        "topk_group",
        fmt::format("{} of {} groups of {} experts, for {} experts a token", routing.groups_kept,
                    routing.num_groups, size, routing.experts_per_token));
  }
}

MixtureConfig read_deepseek_experts(const HfConfig& config, const DeepSeekExperts& defaults) {
  MixtureConfig mixture = read_mixture(config, defaults.mixture);
  read_grouped_routing(config, defaults.routing, mixture.routing);
  // Null is false, as in transformers.
  if (config.is_null(defaults.routing.normalise_key)) mixture.routing.normalise = false;
  const int64_t num_shared = config.integer(defaults.shared_key, defaults.num_shared);
  if (num_shared == 0) return mixture;
  mixture.routing.shared = SharedExpert::plain;
  mixture.shared_size = num_shared * mixture.expert_size;
  mixture.names.shared = "mlp.shared_experts";
  return mixture;
}

void mix_layers_behind(const HfConfig& config, int64_t default_dense,
                       std::vector<LayerConfig>& layers) {
  const int64_t dense = config.integer("first_k_dense_replace", default_dense);
  const int64_t step = config.integer("moe_layer_freq", 1);
  for (auto i = dense; i < std::ssize(layers); ++i) {
    layers[static_cast<size_t>(i)].is_mixture = i % step == 0;
  }
}

void read_unused_layers(const HfConfig& config, int64_t otherwise, DecoderConfig& decoder) {
  const std::string_view key =
      config.has("num_mtp_layers") ? "num_mtp_layers" : "num_nextn_predict_layers";
  decoder.num_unused_layers = config.integer(key, otherwise);
}

}  // namespace paceline
