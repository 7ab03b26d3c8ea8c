// LFM3 (transformers' modeling_lfm3): LFM2's gated short convolutions, windows in every second
// layer of attention, a gate for each head, and norms behind both branches as well.
#include <fmt/format.h>

#include <cmath>

#include "base/json.h"
#include "models/family.h"

namespace paceline {
namespace {

constexpr int64_t kLfm3Window = 256;
constexpr CommonDefaults kLfm3Defaults = {.vocab_size = 128000,
                                          .num_heads = 16,
                                          .num_kv_heads = 4,
                                          .head_dim = 128,
                                          .intermediate_size = 7680,
                                          .max_position = 128000,
                                          .tied_head = true,
                                          .norm_eps_key = "norm_eps",
                                          .norm_eps = 1e-5};

enum class Lfm3Layer : uint8_t { convolution, full_attention, sliding_attention };

// Without `layer_types` the third of each four layers has full attention and the first a window,
// but for the model's first layer.
std::vector<Lfm3Layer> read_layer_kinds(const HfConfig& config) {
  const auto num_layers = static_cast<size_t>(read_num_layers(config));
  std::vector<Lfm3Layer> kinds(num_layers, Lfm3Layer::convolution);
  const auto types = config.find("layer_types");
  if (!types) {
    for (size_t i = 2; i < num_layers; i += 4) kinds[i] = Lfm3Layer::full_attention;
    for (size_t i = 4; i < num_layers; i += 4) kinds[i] = Lfm3Layer::sliding_attention;
    return kinds;
  }
  const auto names = types->items();
  if (names.size() != num_layers) {
    config.invalid("layer_types",
                   fmt::format("{} entries for {} layers", names.size(), num_layers));
  }
  for (size_t i = 0; i < num_layers; ++i) {
    const std::string& name = names[i].string();
    if (name == "conv") continue;
    if (name != "full_attention" && name != "sliding_attention") {
      names[i].fail(
          ErrorCode::unsupported,
          fmt::format("{} isn't supported; conv, full_attention and sliding_attention are",
                      shown_text(name)));
    }
    kinds[i] = name == "full_attention" ? Lfm3Layer::full_attention : Lfm3Layer::sliding_attention;
  }
  return kinds;
}

std::vector<LayerConfig> read_lfm3_layers(const HfConfig& config) {
  std::vector<bool> sliding;
  const std::vector<Lfm3Layer> kinds = read_layer_kinds(config);
  for (const Lfm3Layer kind : kinds) sliding.push_back(kind == Lfm3Layer::sliding_attention);
  std::vector<LayerConfig> layers =
      windowed_layers(config, sliding, config.integer_or_null("sliding_window", kLfm3Window));
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].rope_index = sliding[i] ? 1 : 0;
    if (kinds[i] == Lfm3Layer::convolution) layers[i].mixer = MixerKind::convolution;
  }
  return layers;
}

void read_lfm3_ropes(const HfConfig& config, DecoderConfig& decoder) {
  static const Json full = parse_json(
      R"({"rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.5})",
      "LFM3's full attention");
  static const Json sliding =
      parse_json(R"({"rope_type": "default", "rope_theta": 10000.0})", "LFM3's sliding attention");
  read_ropes(config,
             {{.default_theta = 1e6, .may_be_proportional = true, .otherwise = &full},
              {.layer_type = "sliding_attention",
               .default_theta = 1e6,
               .may_be_proportional = true,
               .otherwise = &sliding}},
             decoder);
}

// Published files call g_proj, as transformers 5 does, gate_proj.
std::string find_gate_name(const WeightReader& weights, const std::vector<LayerConfig>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (weights.contains(fmt::format("layers.{}.self_attn.gate_proj.weight", i))) {
      return "gate_proj";
    }
  }
  return "g_proj";
}

}  // namespace

DecoderConfig read_lfm3(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kLfm3Defaults);
  decoder.head_dim = config.integer("head_dim", kLfm3Defaults.head_dim);
  decoder.attention_scale = 1.0f / std::sqrt(static_cast<float>(decoder.head_dim));
  decoder.qk_norm = QkNorm::head;
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.head_gates = config.boolean("use_attention_gate", true);
  decoder.norms = {.before_attention = "operator_norm", .before_mlp = "ffn_norm"};
  if (config.boolean("use_sandwich_norm", true)) {
    decoder.norms.after_attention = "post_operator_norm";
    decoder.norms.after_mlp = "post_ffn_norm";
  }
  decoder.final_norm = "embedding_norm";
  decoder.mlp = "feed_forward";
  decoder.mlp_names = {.gate = "w1", .up = "w3", .down = "w2"};
  decoder.layers = read_lfm3_layers(config);
  decoder.convolution = {.taps = config.integer("conv_L_cache", 7),
                         .bias = config.boolean("conv_bias", false)};
  decoder.attention_names.gate = find_gate_name(weights, decoder.layers);
  read_lfm3_ropes(config, decoder);
  return decoder;
}

}  // namespace paceline
