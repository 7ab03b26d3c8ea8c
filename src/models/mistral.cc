// Mistral, Ministral and Ministral 3 (transformers' modeling_mistral, _ministral, _ministral3):
// Llama's block, with one window for every layer or none. Ministral's layers may differ in it;
// Ministral 3's queries grow with their position.
#include "models/family.h"

namespace paceline {
namespace {

constexpr int64_t kMistralWindow = 4096;  // without the field; null: no window
constexpr CommonDefaults kMistralDefaults = {.num_kv_heads = 8, .max_position = 131072};
constexpr CommonDefaults kMinistral3Defaults = {.vocab_size = 131072,
                                                .num_heads = 32,
                                                .num_kv_heads = 8,
                                                .head_dim = 128,
                                                .max_position = 262144,
                                                .norm_eps = 1e-5};

// What transformers' class has without `rope_parameters`.
const Json& ministral3_rope() {
  static const Json rope = parse_json(
      R"({"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "beta_fast": 32.0,
          "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
          "original_max_position_embeddings": 16384, "llama_4_scaling_beta": 0.1})",
      "Ministral 3's rope");
  return rope;
}

}  // namespace

DecoderConfig read_mistral(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kMistralDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  const auto window = config.integer_or_null("sliding_window", kMistralWindow);
  decoder.layers = uniform_layers(read_num_layers(config), window.value_or(0));
  read_ropes(config, {{}}, decoder);
  return decoder;
}

DecoderConfig read_ministral(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_mistral(config, weights);
  const auto sliding = read_sliding_layers(config, decoder.num_layers());
  if (!sliding) return decoder;
  decoder.layers =
      windowed_layers(config, *sliding, config.integer_or_null("sliding_window", kMistralWindow));
  return decoder;
}

DecoderConfig read_ministral3(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kMinistral3Defaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.layers = uniform_layers(read_num_layers(config), read_optional_window(config));
  read_ropes(config, {{.otherwise = &ministral3_rope(), .grows_queries = true}}, decoder);
  return decoder;
}

}  // namespace paceline
