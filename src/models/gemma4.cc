// Gemma 4 (transformers' modeling_gemma4 and modeling_gemma4_unified): heads of another size in
// layers with full attention, layers that read an earlier one's keys and values, norms of values, a
// factor behind each layer. Some models have experts beside the MLP, or an input of each token for
// each layer.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/json.h"
#include "models/family.h"
#include "models/layer_fields.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr int64_t kGemma4HeadDim = 256;
constexpr int64_t kGemma4FullHeadDim = 512;
constexpr int64_t kGemma4Pattern = 6;  // every sixth layer has full attention

struct Gemma4Defaults {
  CommonDefaults common;
  int64_t window = 0;
  int64_t layer_input_size = 0;
};

constexpr Gemma4Defaults kGemma4Defaults = {.common = {.vocab_size = 262144,
                                                       .num_heads = 8,
                                                       .num_kv_heads = 4,
                                                       .head_dim = kGemma4HeadDim,
                                                       .max_position = 131072,
                                                       .tied_head = true},
                                            .window = 512,
                                            .layer_input_size = 256};
constexpr Gemma4Defaults kGemma4UnifiedDefaults = {.common = {.vocab_size = 262144,
                                                              .num_heads = 8,
                                                              .num_kv_heads = 4,
                                                              .head_dim = kGemma4HeadDim,
                                                              .max_position = 262144,
                                                              .tied_head = true},
                                                   .window = 1024};

// By layer_types; the last layer has full attention whatever these say.
std::vector<bool> read_gemma4_sliding(const HfConfig& config) {
  const int64_t num_layers = read_num_layers(config);
  std::vector<bool> sliding =
      read_sliding_layers(config, num_layers).value_or(sliding_pattern(num_layers, kGemma4Pattern));
  sliding.back() = false;
  return sliding;
}

// Nothing if `text` isn't the index of a layer.
std::optional<size_t> parse_layer_index(std::string_view text, size_t num_layers) {
  size_t index = 0;
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, index);
  if (error != std::errc() || behind != end || index >= num_layers) return std::nullopt;
  return index;
}

// transformers 5 writes the sizes of layers that differ by their index; published files have them
// once for all layers with full attention.
void read_own_sizes(const HfConfig& config, const std::vector<bool>& sliding,
                    std::vector<LayerConfig>& layers) {
  constexpr std::string_view kByLayer = "per_layer_config";
  const auto by_layer = config.find(kByLayer);
  const bool joins_values = config.boolean("attention_k_eq_v", false);
  const bool has_kv_heads = joins_values && config.has("num_global_key_value_heads");
  for (size_t i = 0; i < layers.size(); ++i) {
    if (sliding[i]) continue;
    layers[i].values_are_keys = joins_values;
    if (by_layer) continue;
    layers[i].head_dim = config.integer("global_head_dim", kGemma4FullHeadDim);
    if (has_kv_heads) layers[i].num_kv_heads = config.integer("num_global_key_value_heads");
  }
  if (!by_layer) return;
  for (const auto& [key, value] : by_layer->members()) {
    const JsonCursor sizes = by_layer->entry(key, value);
    constexpr std::array<std::string_view, 2> kKnown = {"head_dim", "num_key_value_heads"};
    sizes.expect_keys(kKnown);
    const auto index = parse_layer_index(key, layers.size());
    if (!index) {
      config.invalid(kByLayer, fmt::format("found {}, expected the index of one of {} layers",
                                           shown_text(key), layers.size()));
    }
    const HfConfig own(sizes);
    if (own.has("head_dim")) layers[*index].head_dim = own.integer("head_dim");
    if (own.has("num_key_value_heads")) {
      layers[*index].num_kv_heads = own.integer("num_key_value_heads");
    }
  }
}

// The head size of the layers of a kind; 0: the config's.
int64_t head_dim_of_kind(const HfConfig& config, const std::vector<bool>& sliding, bool slides,
                         const std::vector<LayerConfig>& layers) {
  std::optional<int64_t> head_dim;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (sliding[i] != slides) continue;
    if (head_dim.value_or(layers[i].head_dim) != layers[i].head_dim) {
      config.unsupported("per_layer_config", "heads of several sizes in layers of one kind");
    }
    head_dim = layers[i].head_dim;
  }
  return head_dim.value_or(0);
}

void check_kv_heads(const HfConfig& config, const DecoderConfig& decoder) {
  for (int64_t i = 0; i < decoder.num_layers(); ++i) {
    const int64_t heads = decoder.num_kv_heads_of(i);
    if (decoder.num_heads % heads == 0) continue;
    config.invalid("num_attention_heads",
                   fmt::format("{}, expected a multiple of the {} heads of keys of layer {}",
                               decoder.num_heads, heads, i));
  }
}

// Windows of attention in both directions are half as wide, and have their ends beside them.
void read_gemma4_directions(const HfConfig& config, DecoderConfig& decoder) {
  constexpr std::string_view kKey = "use_bidirectional_attention";
  const auto whose = config.find(kKey);
  if (!whose || whose->string() == "vision") return;  // of a text none
  if (whose->string() != "all") {
    config.unsupported(
        kKey, fmt::format("{} isn't supported; all and vision are", shown_text(whose->string())));
  }
  decoder.bidirectional = true;
  for (LayerConfig& layer : decoder.layers) {
    if (layer.window > 0) layer.window = layer.window / 2 + 2;
  }
}

void read_gemma4_ropes(const HfConfig& config, int64_t full_head_dim, int64_t sliding_head_dim,
                       DecoderConfig& decoder) {
  static const Json full = parse_json(
      R"({"rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25})",
      "Gemma 4's full attention");
  static const Json sliding =
      parse_json(R"({"rope_type": "default", "rope_theta": 10000.0})", "Gemma 4's windows");
  read_ropes(config,
             {{.layer_type = "sliding_attention",
               .theta_key = "",
               .scaled = false,
               .head_dim = sliding_head_dim,
               .may_be_proportional = true,
               .otherwise = &sliding},
              {.theta_key = "",
               .scaled = false,
               .head_dim = full_head_dim,
               .may_be_proportional = true,
               .otherwise = &full}},
             decoder);
}

// Every layer has an MLP and experts, whose router has an input of its own.
void read_gemma4_mixture(const HfConfig& config, DecoderConfig& decoder) {
  if (!config.boolean("enable_moe_block", false)) return;
  MixtureConfig mixture = read_mixture(config, {.chosen_key = "top_k_experts"});
  mixture.routing.normalise = true;
  mixture.scales_experts = true;
  mixture.beside_mlp = true;
  mixture.names = {.router = "router.proj", .experts = "experts"};
  decoder.mixture = mixture;
  mix_all_layers(decoder.layers);
}

DecoderConfig read_any_gemma4(const HfConfig& config, const WeightReader& weights,
                              const Gemma4Defaults& defaults) {
  DecoderConfig decoder = read_common(config, weights, defaults.common);
  decoder.head_dim = config.integer("head_dim", kGemma4HeadDim);
  decoder.activation = read_activation(config, "hidden_activation", "gelu_pytorch_tanh");
  decoder.norms = kNormsAround;
  decoder.embedding_scale = std::sqrt(static_cast<float>(decoder.hidden_size));
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.qk_norm = QkNorm::head;
  decoder.value_norm = true;
  decoder.attention_scale = 1.0f;
  decoder.layer_scalars = true;
  decoder.final_soft_cap =
      static_cast<float>(config.number_or_null("final_logit_softcapping", {}).value_or(0.0));
  const std::vector<bool> sliding = read_gemma4_sliding(config);
  decoder.layers =
      windowed_layers(config, sliding, config.integer_or_null("sliding_window", defaults.window));
  for (size_t i = 0; i < sliding.size(); ++i) decoder.layers[i].rope_index = sliding[i] ? 0 : 1;
  read_own_sizes(config, sliding, decoder.layers);
  check_kv_heads(config, decoder);
  read_gemma4_ropes(config, head_dim_of_kind(config, sliding, false, decoder.layers),
                    head_dim_of_kind(config, sliding, true, decoder.layers), decoder);
  const int64_t num_shared = share_last_caches(config, 0, decoder.layers);
  if (config.boolean("use_double_wide_mlp", false)) {
    for (int64_t i = decoder.num_layers() - num_shared; i < decoder.num_layers(); ++i) {
      decoder.layers[static_cast<size_t>(i)].intermediate_size = 2 * decoder.intermediate_size;
    }
  }
  read_gemma4_directions(config, decoder);
  return decoder;
}

}  // namespace

DecoderConfig read_gemma4(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_any_gemma4(config, weights, kGemma4Defaults);
  read_gemma4_mixture(config, decoder);
  read_layer_inputs(config, kGemma4Defaults.layer_input_size, decoder);
  return decoder;
}

DecoderConfig read_gemma4_unified(const HfConfig& config, const WeightReader& weights) {
  return read_any_gemma4(config, weights, kGemma4UnifiedDefaults);
}

}  // namespace paceline
