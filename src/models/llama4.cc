// Llama 4's text model (transformers' modeling_llama4): layers that rotate see a chunk of the
// context and have norms of q and k behind the rotation; in the others queries grow with their
// position. Experts read what the sigmoid of their logit has scaled, and one stands beside them.
#include <fmt/format.h>

#include <algorithm>

#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kLlama4Defaults = {.vocab_size = 202048,
                                            .num_heads = 40,
                                            .num_kv_heads = 8,
                                            .head_dim = 128,
                                            .intermediate_size = 8192,
                                            .max_position = 131072,
                                            .norm_eps = 1e-5,
                                            .hidden_size = 5120};

// Whether each layer sees a chunk alone; `layer_types`, else those that rotate.
std::vector<bool> read_chunked_layers(const HfConfig& config, const std::vector<bool>& rotates) {
  constexpr std::string_view kKey = "layer_types";
  const auto found = config.find(kKey);
  if (!found) return rotates;
  const auto types = found->items();
  if (types.size() != rotates.size()) {
    config.invalid(kKey, fmt::format("{} entries for {} layers", types.size(), rotates.size()));
  }
  std::vector<bool> chunked;
  for (const JsonCursor& type : types) {
    const std::string& name = type.string();
    if (name != "chunked_attention" && name != "full_attention") {
      type.fail(ErrorCode::unsupported,
                fmt::format("{} isn't supported; full_attention and chunked_attention are",
                            shown_text(name)));
    }
    chunked.push_back(name == "chunked_attention");
  }
  return chunked;
}

void read_chunks(const HfConfig& config, DecoderConfig& decoder) {
  constexpr int64_t kChunk = 8192;
  constexpr std::string_view kKey = "attention_chunk_size";
  const int64_t num_layers = read_num_layers(config);
  const std::vector<bool> rotates = read_rotating_layers(config, num_layers);
  const std::vector<bool> chunked = read_chunked_layers(config, rotates);
  const auto chunk = config.integer_or_null(kKey, kChunk);
  decoder.layers = uniform_layers(num_layers, 0);
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    if (!rotates[i]) decoder.layers[i].rope_index = kNoRope;
    if (!chunked[i] || (!chunk && !config.has("layer_types"))) continue;
    if (!chunk) config.invalid(kKey, "null, but there are layers with chunked_attention");
    decoder.layers[i].window = *chunk;
    decoder.layers[i].chunked = true;
  }
}

// `moe_layers` lists mixtures, else every interleave_moe_layer_step-th layer is one.
void mix_layers(const HfConfig& config, std::vector<LayerConfig>& layers) {
  if (const auto listed = config.find("moe_layers")) {
    for (const JsonCursor& item : listed->items()) {
      const auto index = static_cast<size_t>(item.integer({.min = 0, .max = 1 << 20}));
      if (index < layers.size()) layers[index].is_mixture = true;
    }
    return;
  }
  const auto step = static_cast<size_t>(config.integer("interleave_moe_layer_step", 1));
  for (size_t i = 0; i < layers.size(); ++i) layers[i].is_mixture = (i + 1) % step == 0;
}

MixtureConfig read_experts(const HfConfig& config) {
  MixtureConfig mixture = read_mixture(config, {.size_key = "intermediate_size",
                                                .num_experts = 16,
                                                .experts_per_token = 1,
                                                .expert_size = kLlama4Defaults.intermediate_size});
  mixture.routing.score = ExpertScore::sigmoid;
  mixture.scales_inputs = true;
  mixture.shared_size = mixture.expert_size;
  mixture.names.router = "feed_forward.router";
  mixture.names.experts = "feed_forward.experts";
  mixture.names.shared = "feed_forward.shared_expert";
  return mixture;
}

}  // namespace

DecoderConfig read_llama4(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kDenseSize = 16384, kFloorScale = 8192;
  DecoderConfig decoder = read_common(config, weights, kLlama4Defaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = decoder.output_bias = config.boolean("attention_bias", false);
  decoder.rope_pairs = RopePairs::neighbours;
  decoder.mlp = "feed_forward";
  decoder.mixture = read_experts(config);
  decoder.intermediate_size = config.integer("intermediate_size_mlp", kDenseSize);
  read_chunks(config, decoder);
  mix_layers(config, decoder.layers);
  if (std::ranges::none_of(decoder.layers, &LayerConfig::is_mixture)) decoder.mixture.reset();
  if (config.boolean("use_qk_norm", true)) {
    decoder.qk_norm = QkNorm::head;
    decoder.qk_norm_weight = false;
    decoder.rotates_first = true;
    decoder.norms_rotated_alone = true;
  }
  read_ropes(config, {{.default_theta = 5e5}}, decoder);
  if (config.boolean("attn_temperature_tuning", true)) {
    decoder.query_growth = {.beta = config.number("attn_scale", 0.1),
                            .context = config.integer("floor_scale", kFloorScale),
                            .offset = 1,
                            .unrotated_alone = true};
  }
  return decoder;
}

}  // namespace paceline
