// OLMo Hybrid (transformers' modeling_olmo_hybrid): gated delta nets behind norms as Llama's, and
// every fourth layer a block of OLMo 3, with norms behind and mostly without a rope.
#include <fmt/format.h>

#include "models/delta_net_fields.h"
#include "models/family.h"

namespace paceline {
namespace {

constexpr size_t kAttentionInterval = 4;
constexpr float kDeltaNormEps = 1e-5f;  // whatever rms_norm_eps is
constexpr CommonDefaults kOlmoHybridDefaults = {
    .vocab_size = 100352, .num_heads = 30, .intermediate_size = 11008, .max_position = 65536};

// Without `layer_types` every fourth layer is attention, and the last one where there are fewer.
std::vector<LayerConfig> read_delta_layers(const HfConfig& config) {
  std::vector<LayerConfig> layers = uniform_layers(read_num_layers(config), 0);
  if (read_mixers(config, {.name = "linear_attention", .kind = MixerKind::delta_net}, layers))
    return layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    if ((i + 1) % kAttentionInterval != 0) layers[i].mixer = MixerKind::delta_net;
  }
  if (layers.size() < kAttentionInterval) layers.back().mixer = MixerKind::attention;
  return layers;
}

DeltaNetConfig read_olmo_delta_net(const HfConfig& config, const DecoderConfig& decoder) {
  const int64_t key_heads = config.integer("linear_num_key_heads", decoder.num_heads);
  const int64_t key_dim =
      config.integer("linear_key_head_dim", 3 * decoder.hidden_size / (4 * key_heads));
  if (key_dim < 1) {
    config.invalid("linear_num_key_heads",
                   fmt::format("{} heads share three quarters of the hidden_size {}, expected at "
                               "least 1 element each, or linear_key_head_dim",
                               key_heads, decoder.hidden_size));
  }
  DeltaNetConfig delta = read_delta_net(config, {.key_heads = key_heads,
                                                 .value_heads = decoder.num_heads,
                                                 .key_dim = key_dim,
                                                 .value_dim = 2 * key_dim});
  delta.activation = decoder.activation;
  delta.beta_scale = config.boolean("linear_allow_neg_eigval", true) ? 2.0f : 1.0f;
  delta.norm_eps = kDeltaNormEps;
  delta.projections = DeltaProjections::separate;
  delta.norm = "o_norm";
  delta.output = "o_proj";
  return delta;
}

// A theta of null, or no type of rope, means none, and so did `rope_parameters: null` in the first
// published files. Without any field transformers has a rope.
bool has_rope(const HfConfig& config) {
  if (const auto parameters = config.find("rope_parameters")) {
    const HfConfig rope(*parameters);
    return !rope.is_null("rope_theta") && (!rope.is_null("rope_type") || rope.has("rope_theta"));
  }
  if (config.has("rope_theta") || describes_rope(config)) return true;
  return !config.is_null("rope_parameters") && !config.is_null("rope_theta");
}

// Published files have the names of OLMo-core, which transformers also writes. It calls the first
// norm of an attention layer like the second one of the others.
void read_norm_names(const WeightReader& weights, DecoderConfig& decoder) {
  const auto find_name = [&](size_t layer, std::string_view published, std::string_view otherwise) {
    const auto name = fmt::format("layers.{}.{}.weight", layer, published);
    return std::string(weights.contains(name) ? published : otherwise);
  };
  decoder.norms = kNormsBehind;
  decoder.state_norms = BlockNorms();
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    const bool is_attention = decoder.layers[i].mixer == MixerKind::attention;
    BlockNorms& norms = is_attention ? decoder.norms : *decoder.state_norms;
    std::string& renamed = is_attention ? norms.after_attention : norms.before_mlp;
    renamed = find_name(i, "feedforward_layer_norm", "post_attention_layernorm");
    if (is_attention) continue;
    norms.before_attention = find_name(i, "attention_layer_norm", "input_layernorm");
    decoder.delta_net->has_split_convolution =
        weights.contains(fmt::format("layers.{}.linear_attn.q_conv1d.weight", i));
  }
}

}  // namespace

DecoderConfig read_olmo_hybrid(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kOlmoHybridDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.qk_norm = QkNorm::width;
  decoder.layers = read_delta_layers(config);
  decoder.delta_net = read_olmo_delta_net(config, decoder);
  read_norm_names(weights, decoder);
  if (has_rope(config)) {
    read_ropes(config, {{}}, decoder);
  } else {
    for (LayerConfig& layer : decoder.layers) layer.rope_index = kNoRope;
  }
  return decoder;
}

}  // namespace paceline
