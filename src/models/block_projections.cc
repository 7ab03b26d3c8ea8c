#include "models/block_projections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "adapters/expert_names.h"

namespace paceline {
namespace {

constexpr std::string_view kConvolutionName = "conv";

// The projections of a gated network of this name.
struct GatedProjections {
  std::string name;
  MlpNames names;
  int64_t expert = kNoExpert;
  int64_t hidden = 0;
  int64_t width = 0;
  bool gated = true;

  BlockProjection gate() const { return part(names.gate, BlockProduct::gate_up, 0, width, hidden); }
  BlockProjection up() const {
    return part(names.up, BlockProduct::gate_up, gated ? width : 0, width, hidden);
  }
  BlockProjection gate_up() const {
    return part(names.gate_up, BlockProduct::gate_up, 0, 2 * width, hidden);
  }
  BlockProjection down() const { return part(names.down, BlockProduct::down, 0, hidden, width); }
  // Each by its own name, and gate and up also together.
  std::vector<BlockProjection> all() const {
    if (!gated) return {up(), down()};
    return {gate(), up(), gate_up(), down()};
  }

 private:
  BlockProjection part(const std::string& projection, BlockProduct product, int64_t first,
                       int64_t out, int64_t in) const {
    return {name + "." + projection, product, first, out, in, expert};
  }
};

GatedProjections chosen_expert(const DecoderConfig& config, int64_t index) {
  return {
      .name = fmt::format("{}.{}", kExpertsPart, index),
      .names = MlpNames(),
      .expert = index,
      .hidden = config.mixture->latent_size > 0 ? config.mixture->latent_size : config.hidden_size,
      .width = config.mixture->expert_size,
      .gated = config.mixture->gated};
}

bool is_shared(const MixtureConfig& config, int64_t expert) {
  return expert == config.routing.num_experts;
}

bool is_mixture(const DecoderConfig& config, int64_t layer_index) {
  return config.layers[static_cast<size_t>(layer_index)].is_mixture;
}

// What stands beside and around experts that aren't the routing's: a shared one, projections to
// latent columns and back.
std::vector<BlockProjection> projections_apart(const DecoderConfig& config) {
  const MixtureConfig& mixture = *config.mixture;
  const int64_t hidden = config.hidden_size, latent = mixture.latent_size;
  std::vector<BlockProjection> parts;
  if (latent > 0) {
    parts = {{mixture.names.to_latent, BlockProduct::to_latent, 0, latent, hidden},
             {mixture.names.from_latent, BlockProduct::from_latent, 0, hidden, latent}};
  }
  const GatedProjections shared{.name = mixture.names.shared,
                                .names = MlpNames(),
                                .hidden = hidden,
                                .width = mixture.shared_size,
                                .gated = mixture.gated};
  if (mixture.gated) parts.push_back(shared.gate());
  parts.push_back(shared.up());
  parts.push_back(shared.down());
  return parts;
}

std::vector<BlockProjection> attention_projections(const DecoderConfig& config,
                                                   int64_t layer_index) {
  const int64_t head_dim = config.head_dim_of(layer_index);
  const int64_t hidden = config.hidden_size, width = config.num_heads * head_dim;
  const int64_t q = (config.attention_gate ? 2 : 1) * width;
  const int64_t kv = config.num_kv_heads_of(layer_index) * head_dim;
  const std::string layer = config.attention_names.layer + ".";
  const BlockProjection output{layer + config.attention_names.output, BlockProduct::output, 0,
                               hidden, width};
  const AttentionNames& names = config.attention_names;
  if (config.fused_qkv) {
    BlockProjection whole{layer + names.qkv, BlockProduct::qkv, 0, q + 2 * kv, hidden};
    if (config.grouped_qkv) {
      whole.order = grouped_qkv_rows(config.num_heads, config.num_kv_heads, config.head_dim);
    }
    if (config.qkv_shards > 0) {
      whole.order = sharded_qkv_rows(config.num_heads * config.head_dim, config.qkv_shards);
    }
    return {std::move(whole), output};
  }
  std::vector<BlockProjection> parts = {{layer + names.q, BlockProduct::qkv, 0, q, hidden}};
  if (!config.shares_cache(layer_index)) {
    parts.push_back({layer + names.k, BlockProduct::qkv, q, kv, hidden});
    if (!config.layers[static_cast<size_t>(layer_index)].values_are_keys) {
      parts.push_back({layer + names.v, BlockProduct::qkv, q + kv, kv, hidden});
    }
  }
  if (config.head_gates) {
    parts.push_back({.part = layer + "g_proj",
                     .product = BlockProduct::qkv,
                     .first_column = q + 2 * kv,
                     .out_features = config.num_heads,
                     .in_features = hidden,
                     .has_bias = false});
  }
  parts.push_back(output);
  return parts;
}

// Adapters don't change kv_b_proj, whose matrices of a head queries and values are multiplied by.
std::vector<BlockProjection> latent_attention_projections(const DecoderConfig& config) {
  const LatentConfig& latent = *config.latent;
  const int64_t hidden = config.hidden_size, heads = config.num_heads;
  const std::string layer = config.attention_names.layer + ".";
  const bool has_rank = latent.query_rank > 0;
  const int64_t queries = heads * latent.query_dim();
  const int64_t first = has_rank ? latent.query_rank : queries;
  std::vector<BlockProjection> parts = {
      {.part = layer + (has_rank ? "q_a_proj" : "q_proj"),
       .product = BlockProduct::qkv,
       .first_column = 0,
       .out_features = first,
       .in_features = hidden,
       .has_bias = has_rank},
      {layer + "kv_a_proj_with_mqa", BlockProduct::qkv, first, latent.row_dim(), hidden}};
  if (has_rank) {
    parts.push_back({.part = layer + "q_b_proj",
                     .product = BlockProduct::queries,
                     .first_column = 0,
                     .out_features = queries,
                     .in_features = latent.query_rank,
                     .has_bias = false});
  }
  parts.push_back({layer + "o_proj", BlockProduct::output, 0, hidden, heads * latent.value_dim});
  return parts;
}

std::vector<BlockProjection> delta_net_projections(const DecoderConfig& config) {
  const DeltaNetConfig& delta = *config.delta_net;
  const std::string& name = delta.name;
  const int64_t hidden = config.hidden_size;
  std::vector<BlockProjection> parts;
  int64_t first_column = 0;
  for (Projection& input : delta_projections(delta, name)) {
    parts.push_back({.part = std::move(input.name),
                     .product = BlockProduct::qkv,
                     .first_column = first_column,
                     .out_features = input.out_features,
                     .in_features = hidden,
                     .order = std::move(input.order)});
    first_column += input.out_features;
  }
  BlockProduct product = BlockProduct::output_gates;  // then decays
  for (Projection& latent : latent_gate_projections(delta, name)) {
    parts.push_back({std::move(latent.name), product, 0, latent.out_features, delta.gate_rank});
    product = BlockProduct::decays;
  }
  parts.push_back(
      {name + "." + delta.output, BlockProduct::output, 0, hidden, delta.value_width()});
  return parts;
}

std::vector<BlockProjection> convolution_projections(const DecoderConfig& config) {
  const int64_t hidden = config.hidden_size;
  const std::string name(kConvolutionName);
  return {{name + ".in_proj", BlockProduct::qkv, 0, 3 * hidden, hidden},
          {name + ".out_proj", BlockProduct::output, 0, hidden, hidden}};
}

std::vector<BlockProjection> mamba1_projections(const DecoderConfig& config) {
  const Mamba1Config& mamba = *config.mamba1;
  const int64_t hidden = config.hidden_size, inner = mamba.inner;
  return {{mamba.name + ".in_proj", BlockProduct::qkv, 0, 2 * inner, hidden},
          {mamba.name + ".x_proj", BlockProduct::scan_parts, 0, mamba.parts_width(), inner},
          {mamba.name + ".dt_proj", BlockProduct::scan_steps, 0, inner, mamba.step_rank},
          {mamba.name + ".out_proj", BlockProduct::output, 0, hidden, inner}};
}

std::vector<BlockProjection> mamba2_projections(const DecoderConfig& config) {
  const Mamba2Config& mamba = *config.mamba2;
  const int64_t hidden = config.hidden_size;
  return {{mamba.name + ".in_proj", BlockProduct::qkv, 0, mamba.input_width(), hidden},
          {mamba.name + ".out_proj", BlockProduct::output, 0, hidden, mamba.inner()}};
}

std::vector<BlockProjection> mixer_projections(const DecoderConfig& config, int64_t layer_index) {
  switch (config.layers[static_cast<size_t>(layer_index)].mixer) {
    case MixerKind::attention:
      break;
    case MixerKind::none:
      return {};
    case MixerKind::delta_net:
      return delta_net_projections(config);
    case MixerKind::convolution:
      return convolution_projections(config);
    case MixerKind::mamba1:
      return mamba1_projections(config);
    case MixerKind::mamba2:
      return mamba2_projections(config);
  }
  return config.latent ? latent_attention_projections(config)
                       : attention_projections(config, layer_index);
}

}  // namespace

std::string mixer_name(const DecoderConfig& config, int64_t layer_index) {
  switch (config.layers[static_cast<size_t>(layer_index)].mixer) {
    case MixerKind::attention:
      return config.attention_names.layer;
    case MixerKind::delta_net:
      return config.delta_net.value().name;
    case MixerKind::convolution:
      return std::string(kConvolutionName);
    case MixerKind::mamba1:
      return config.mamba1.value().name;
    case MixerKind::mamba2:
      return config.mamba2.value().name;
    case MixerKind::none:
      break;
  }
  return "";
}

std::vector<BlockProjection> block_projections(const DecoderConfig& config, int64_t layer_index) {
  const int64_t hidden = config.hidden_size, inner = config.intermediate_size_of(layer_index);
  const LayerConfig& layer = config.layers[static_cast<size_t>(layer_index)];
  std::vector<BlockProjection> parts = mixer_projections(config, layer_index);
  if (config.laurel_rank > 0) {
    const int64_t rank = config.laurel_rank;
    parts.push_back({"laurel.linear_left", BlockProduct::laurel_left, 0, rank, hidden});
    parts.push_back({"laurel.linear_right", BlockProduct::laurel_right, 0, hidden, rank});
  }
  if (config.layer_inputs) {
    const int64_t width = config.layer_inputs->width;
    parts.push_back({"per_layer_input_gate", BlockProduct::input_gate, 0, width, hidden});
    parts.push_back({"per_layer_projection", BlockProduct::input_projection, 0, hidden, width});
  }
  const bool has_experts_alone = layer.is_mixture && !config.mixture->beside_mlp;
  if (has_experts_alone || !layer.has_mlp) return parts;
  const std::string mlp = config.mlp.empty() ? "" : config.mlp + ".";
  const MlpNames& names = config.mlp_names;
  if (config.fused_gate_up) {
    parts.push_back({mlp + names.gate_up, BlockProduct::gate_up, 0, 2 * inner, hidden});
    if (config.up_first) parts.back().order = {{inner, inner}, {0, inner}};
  } else {
    if (config.gated_mlp) {
      parts.push_back({mlp + names.gate, BlockProduct::gate_up, 0, inner, hidden});
    }
    const int64_t first = config.gated_mlp ? inner : 0;
    parts.push_back({mlp + names.up, BlockProduct::gate_up, first, inner, hidden});
  }
  parts.push_back({mlp + names.down, BlockProduct::down, 0, hidden, inner});
  return parts;
}

std::string expert_name(const MixtureConfig& config, int64_t expert) {
  if (is_shared(config, expert)) return config.names.shared;
  return fmt::format("{}.{}", config.names.experts, expert);
}

MlpNames expert_mlp_names(const MixtureConfig& config, int64_t expert) {
  if (!is_shared(config, expert)) return config.names.projections;
  return config.names.fused_shared.value_or(MlpNames());
}

std::vector<BlockProjection> shared_projections(const DecoderConfig& config, int64_t layer_index) {
  if (!is_mixture(config, layer_index)) return {};
  const MixtureConfig& mixture = *config.mixture;
  if (mixture.shared_apart()) return projections_apart(config);
  if (mixture.routing.shared == SharedExpert::none) return {};
  const GatedProjections expert{.name = mixture.names.shared,
                                .names = expert_mlp_names(mixture, mixture.routing.num_experts),
                                .expert = mixture.routing.num_experts,
                                .hidden = config.hidden_size,
                                .width = mixture.shared_size,
                                .gated = mixture.gated};
  if (mixture.names.fused_shared) return {expert.gate_up(), expert.down()};
  if (!mixture.gated) return expert.all();
  return {expert.gate(), expert.up(), expert.down()};
}

std::vector<BlockProjection> expert_projections(const DecoderConfig& config, int64_t layer_index) {
  std::vector<BlockProjection> parts;
  if (!is_mixture(config, layer_index)) return parts;
  for (int64_t i = 0; i < config.mixture->routing.num_experts; ++i) {
    for (BlockProjection& part : chosen_expert(config, i).all()) parts.push_back(std::move(part));
  }
  for (BlockProjection& part : shared_projections(config, layer_index)) {
    parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<BlockProjection> router_projections(const DecoderConfig& config, int64_t layer_index) {
  if (!is_mixture(config, layer_index)) return {};
  const MixtureConfig& mixture = *config.mixture;
  const int64_t experts = mixture.routing.num_experts, hidden = config.hidden_size;
  std::vector<BlockProjection> parts = {
      {canonical_router_part(mixture.names.router), BlockProduct::router, 0, experts, hidden}};
  if (mixture.routing.shared == SharedExpert::gated) {
    parts.push_back({mixture.names.shared_gate, BlockProduct::router, experts, 1, hidden});
  }
  return parts;
}

std::optional<BlockProjection> find_projection(const DecoderConfig& config, int64_t layer_index,
                                               std::string_view part) {
  const auto find_among = [&](std::vector<BlockProjection> all) -> std::optional<BlockProjection> {
    const auto at = std::ranges::find(all, part, &BlockProjection::part);
    return at == all.end() ? std::nullopt : std::optional(std::move(*at));
  };
  const auto expert = split_expert_part(part);
  if (!expert) {
    auto found = find_among(block_projections(config, layer_index));
    if (!found) found = find_among(shared_projections(config, layer_index));
    return found ? found : find_among(router_projections(config, layer_index));
  }
  if (!is_mixture(config, layer_index) || expert->expert >= config.mixture->routing.num_experts) {
    return std::nullopt;
  }
  return find_among(chosen_expert(config, expert->expert).all());
}

std::optional<StoredProjection> find_stored_projection(const DecoderConfig& config,
                                                       int64_t stored_layer,
                                                       std::string_view part) {
  for (int64_t i = 0; i < config.num_layers(); ++i) {
    if (config.stored_layer(i) != stored_layer) continue;
    if (auto found = find_projection(config, i, part))
      return StoredProjection{i, std::move(*found)};
  }
  return std::nullopt;
}

std::string stored_projection_names(const DecoderConfig& config, int64_t stored_layer) {
  std::vector<BlockProjection> all;
  for (int64_t i = 0; i < config.num_layers(); ++i) {
    if (config.stored_layer(i) != stored_layer) continue;
    for (BlockProjection& part : block_projections(config, i)) all.push_back(std::move(part));
  }
  return projection_names(all);
}

std::string projection_names(const std::vector<BlockProjection>& projections) {
  std::string names;
  for (const BlockProjection& projection : projections) {
    names += names.empty() ? "" : ", ";
    names += projection.part;
  }
  return names;
}

}  // namespace paceline
