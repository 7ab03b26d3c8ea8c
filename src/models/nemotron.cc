// Nemotron-H and Nemotron 3 Nano (transformers' modeling_nemotron_h): each layer is Mamba 2,
// attention, an MLP or a mixture alone.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/family.h"
#include "models/mamba2_fields.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kNemotronDefaults = {.vocab_size = 131072,
                                              .num_heads = 32,
                                              .num_kv_heads = 8,
                                              .head_dim = 128,
                                              .intermediate_size = 21504,
                                              .max_position = 4096,
                                              .norm_eps_key = "layer_norm_epsilon",
                                              .norm_eps = 1e-5};
constexpr std::string_view kMixer = "mixer";

struct NemotronLayer {
  char letter;  // in hybrid_override_pattern
  std::string_view name;
  std::string_view old_name;
  LayerConfig layer;
};

constexpr LayerConfig kAttentionLayer = {
    .mixer = MixerKind::attention, .rope_index = kNoRope, .has_mlp = false};
constexpr LayerConfig kMambaLayer = {
    .mixer = MixerKind::mamba2, .rope_index = kNoRope, .has_mlp = false};
constexpr LayerConfig kMlpLayer = {.mixer = MixerKind::none, .rope_index = kNoRope};
constexpr LayerConfig kMixtureLayer = {
    .mixer = MixerKind::none, .rope_index = kNoRope, .is_mixture = true};

constexpr std::array<NemotronLayer, 4> kNemotronLayers = {{
    {'M', "linear_attention", "mamba", kMambaLayer},
    {'*', "full_attention", "attention", kAttentionLayer},
    {'-', "mlp", "mlp", kMlpLayer},
    {'E', "moe", "moe", kMixtureLayer},
}};

std::vector<LayerConfig> read_pattern(const HfConfig& config, std::string_view key) {
  std::vector<LayerConfig> layers;
  for (const char letter : config.string(key, "")) {
    const auto found = std::ranges::find(kNemotronLayers, letter, &NemotronLayer::letter);
    if (found == kNemotronLayers.end()) {
      config.unsupported(key, fmt::format("{} isn't supported; M, *, - and E are",
                                          shown_text(std::string_view(&letter, 1))));
    }
    layers.push_back(found->layer);
  }
  return layers;
}

std::vector<LayerConfig> read_nemotron_layers(const HfConfig& config) {
  constexpr std::string_view kPattern = "hybrid_override_pattern";
  const std::string_view key =
      config.has("layers_block_type") ? "layers_block_type" : "layer_types";
  std::vector<LayerConfig> layers;
  if (const auto types = config.find(key)) {
    for (const JsonCursor& type : types->items()) {
      const std::string& name = type.string();
      const auto found = std::ranges::find_if(kNemotronLayers, [&](const NemotronLayer& one) {
        return name == one.name || name == one.old_name;
      });
      if (found == kNemotronLayers.end()) {
        type.fail(ErrorCode::unsupported,
                  fmt::format("{} isn't supported; linear_attention, full_attention, mlp and moe "
                              "are",
                              shown_text(name)));
      }
      layers.push_back(found->layer);
    }
  } else if (config.has(kPattern)) {
    layers = read_pattern(config, kPattern);
  } else {
    layers = {kMambaLayer, kMixtureLayer, kAttentionLayer, kMlpLayer};
  }
  constexpr size_t kMostLayers = 1024;
  if (layers.empty() || layers.size() > kMostLayers) {
    config.invalid(key, fmt::format("{} layers, expected 1 to {}", layers.size(), kMostLayers));
  }
  return layers;
}

// An MLP without a gate, whose activation is relu(x)^2.
void read_squared_relu(const HfConfig& config) {
  const std::string name = config.string("mlp_hidden_act", "relu2");
  if (name == "relu2") return;
  config.unsupported("mlp_hidden_act",
                     fmt::format("{} isn't supported; relu2 is", shown_text(name)));
}

MixtureConfig read_nemotron_mixture(const HfConfig& config) {
  constexpr int64_t kExpertSize = 7688;
  MixtureConfig mixture = read_mixture(config, {.experts_key = "n_routed_experts",
                                                .num_experts = 8,
                                                .experts_per_token = 2,
                                                .expert_size = kExpertSize});
  read_grouped_routing(config, {}, mixture.routing);
  mixture.gated = false;
  mixture.has_choice_bias = true;
  mixture.routing.shared = SharedExpert::plain;
  mixture.shared_size = config.integer("moe_shared_expert_intermediate_size", kExpertSize);
  mixture.expert_bias = config.boolean("mlp_bias", false);
  mixture.names = {.router = "mixer.gate",
                   .choice_bias = "mixer.gate.e_score_correction_bias",
                   .experts = "mixer.experts",
                   .shared = "mixer.shared_experts"};
  if (config.has("moe_latent_size")) {
    mixture.latent_size = config.integer("moe_latent_size");
    mixture.routing.shared = SharedExpert::none;  // it stands apart
    mixture.names.to_latent = "mixer.fc1_latent_proj";
    mixture.names.from_latent = "mixer.fc2_latent_proj";
  }
  return mixture;
}

}  // namespace

DecoderConfig read_nemotron_h(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kNemotronDefaults);
  read_squared_relu(config);
  decoder.activation = Activation::relu;
  decoder.gated_mlp = false;
  decoder.self_gated_mlp = true;
  decoder.mlp_bias = config.boolean("mlp_bias", false);
  decoder.mlp = kMixer;
  decoder.attention_names.layer = kMixer;
  decoder.norms = {.before_attention = "norm", .before_mlp = "norm"};
  decoder.final_norm = "norm_f";
  decoder.layers = read_nemotron_layers(config);
  decoder.num_unused_layers = 0;
  constexpr int64_t kHeads = 128, kHeadDim = 64;
  const Mamba2Fields fields = {.heads = "mamba_num_heads",
                               .head_dim = "mamba_head_dim",
                               .groups = "n_groups",
                               .state_size = "ssm_state_size",
                               .taps = "conv_kernel",
                               .convolution_bias = "use_conv_bias",
                               .projection_bias = "use_bias",
                               .default_heads = kHeads,
                               .default_groups = 8,
                               .default_state_size = 128};
  const int64_t inner =
      config.integer(fields.heads, kHeads) * config.integer(fields.head_dim, kHeadDim);
  read_mamba2(config, fields, inner, decoder);
  if (decoder.mamba2) {
    decoder.mamba2->name = kMixer;
    decoder.mamba2->activation = read_activation(config, "mamba_hidden_act", "silu");
    decoder.mamba2->time_steps = {.low = static_cast<float>(config.number("time_step_min", 1e-3))};
  }
  if (std::ranges::any_of(decoder.layers, &LayerConfig::is_mixture)) {
    decoder.mixture = read_nemotron_mixture(config);
  }
  return decoder;
}

}  // namespace paceline
