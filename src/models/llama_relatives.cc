// Families with Llama's block: IQuest-Coder, InternLM 3 and CWM (other defaults; transformers'
// configuration_iquestcoder, _internlm3, modeling_cwm), Seed-OSS (a bias of its own for the output
// of attention), Arcee (an MLP without a gate), Helium and ERNIE 4.5 (neighbours rotate), EuroBERT
// (an encoder), Nemotron (an MLP without a gate, layer norms of 1 + w; half of each head rotates),
// Jais 2 (such an MLP, layer norms), EXAONE 3 (modeling_exaone; other names), Apertus (an MLP
// without a gate whose activation has weights, norms of heads; modeling_apertus).
#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kIQuestCoderDefaults = {.vocab_size = 76800,
                                                 .num_heads = 40,
                                                 .num_kv_heads = 8,
                                                 .head_dim = 128,
                                                 .max_position = 131072,
                                                 .norm_eps = 1e-5};
constexpr CommonDefaults kInternLm3Defaults = {.vocab_size = 128512,
                                               .num_heads = 32,
                                               .num_kv_heads = 2,
                                               .head_dim = 128,
                                               .max_position = 32768,
                                               .norm_eps = 1e-5};
constexpr CommonDefaults kApertusDefaults = {.vocab_size = 131072,
                                             .num_heads = 32,
                                             .intermediate_size = 14336,
                                             .max_position = 65536,
                                             .norm_eps = 1e-5};
constexpr CommonDefaults kSeedOssDefaults = {.vocab_size = 155136,
                                             .num_heads = 80,
                                             .num_kv_heads = 8,
                                             .head_dim = 128,
                                             .max_position = 524288};
constexpr CommonDefaults kArceeDefaults = {
    .vocab_size = 32000, .num_heads = 32, .max_position = 4096, .norm_eps = 1e-5};
constexpr CommonDefaults kDenseNemotronDefaults = {.vocab_size = 256000,
                                                   .num_heads = 48,
                                                   .max_position = 4096,
                                                   .norm_eps_key = "norm_eps",
                                                   .norm_eps = 1e-5};
constexpr CommonDefaults kExaoneDefaults = {.vocab_size = 102400,
                                            .num_heads = 32,
                                            .num_kv_heads = 8,
                                            .intermediate_size = 14336,
                                            .max_position = 4096,
                                            .norm_eps = 1e-5};
constexpr CommonDefaults kJais2Defaults = {.vocab_size = 150272,
                                           .num_heads = 26,
                                           .max_position = 8192,
                                           .norm_eps_key = "layer_norm_eps",
                                           .norm_eps = 1e-5};
constexpr CommonDefaults kHeliumDefaults = {.vocab_size = 48000,
                                            .num_heads = 20,
                                            .num_kv_heads = 20,
                                            .head_dim = 128,
                                            .max_position = 4096,
                                            .norm_eps = 1e-8};
constexpr CommonDefaults kErnieDefaults = {.vocab_size = 103424,
                                           .num_heads = 16,
                                           .num_kv_heads = 2,
                                           .head_dim = 128,
                                           .max_position = 131072,
                                           .tied_head = true,
                                           .norm_eps = 1e-5};
constexpr CommonDefaults kCwmDefaults = {.vocab_size = 128256,
                                         .num_heads = 48,
                                         .num_kv_heads = 8,
                                         .head_dim = 128,
                                         .max_position = 131072,
                                         .norm_eps = 1e-5};
constexpr CommonDefaults kEuroBertDefaults = {.vocab_size = 128256,
                                              .num_heads = 12,
                                              .intermediate_size = 3072,
                                              .max_position = 8192,
                                              .norm_eps = 1e-5,
                                              .hidden_size = 768};

// Layers without windows, and one rope.
DecoderConfig read_plain(const HfConfig& config, const WeightReader& weights,
                         const CommonDefaults& defaults, double theta = 10000.0) {
  DecoderConfig decoder = read_common(config, weights, defaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{.default_theta = theta}}, decoder);
  return decoder;
}

void read_biases(const HfConfig& config, std::string_view of_attention, std::string_view of_mlp,
                 DecoderConfig& decoder) {
  decoder.qkv_bias = config.boolean(of_attention, false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.mlp_bias = config.boolean(of_mlp, false);
}

// What transformers' class has without `rope_parameters`.
const Json& cwm_rope() {
  static const Json rope = parse_json(
      R"({"rope_type": "llama3", "rope_theta": 1000000.0, "factor": 16.0, "high_freq_factor": 4.0,
          "low_freq_factor": 1.0, "original_max_position_embeddings": 8192})",
      "CWM's rope");
  return rope;
}

const Json& apertus_rope() {
  static const Json rope = parse_json(
      R"({"rope_type": "llama3", "rope_theta": 12000000.0, "factor": 8.0, "high_freq_factor": 4.0,
          "low_freq_factor": 1.0, "original_max_position_embeddings": 8192})",
      "Apertus's rope");
  return rope;
}

}  // namespace

DecoderConfig read_apertus(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kApertusDefaults);
  decoder.gated_mlp = false;
  decoder.xielu = config.string("hidden_act", "xielu") == "xielu";
  if (!decoder.xielu) decoder.activation = read_activation(config, "hidden_act", "xielu");
  decoder.qkv_bias = decoder.output_bias = config.boolean("attention_bias", false);
  decoder.qk_norm = QkNorm::head;
  decoder.norms = {.before_attention = "attention_layernorm",
                   .before_mlp = "feedforward_layernorm"};
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{.default_theta = 1.2e7, .otherwise = &apertus_rope()}}, decoder);
  return decoder;
}

DecoderConfig read_iquestcoder(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_plain(config, weights, kIQuestCoderDefaults);
  read_biases(config, "attention_bias", "mlp_bias", decoder);
  return decoder;
}

// Its own names of the biases are those of published files; transformers writes Llama's.
DecoderConfig read_internlm3(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_plain(config, weights, kInternLm3Defaults);
  read_biases(config, config.has("qkv_bias") ? "qkv_bias" : "attention_bias",
              config.has("bias") ? "bias" : "mlp_bias", decoder);
  if (decoder.qkv_bias != decoder.mlp_bias) {
    config.unsupported("qkv_bias", "differs from bias, which decides the bias of o_proj, too");
  }
  return decoder;
}

DecoderConfig read_seed_oss(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_plain(config, weights, kSeedOssDefaults);
  decoder.qkv_bias = config.boolean("attention_bias", true);
  decoder.output_bias = config.boolean("attention_out_bias", false);
  decoder.mlp_bias = config.boolean("mlp_bias", false);
  return decoder;
}

DecoderConfig read_arcee(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kArceeDefaults);
  read_plain_mlp(config, "hidden_act", "relu2", decoder);
  read_biases(config, "attention_bias", "mlp_bias", decoder);
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

// A file has its own names of some fields, or those of transformers' class.
DecoderConfig read_exaone(const HfConfig& config, const WeightReader& weights) {
  CommonDefaults defaults = kExaoneDefaults;
  if (config.has("layer_norm_epsilon")) defaults.norm_eps_key = "layer_norm_epsilon";
  DecoderConfig decoder = read_common(config, weights, defaults);
  const bool has_own = config.has("activation_function");
  decoder.activation =
      read_activation(config, has_own ? "activation_function" : "hidden_act", "silu");
  read_biases(config, "attention_bias", "mlp_bias", decoder);
  const std::string_view layers = config.has("num_layers") ? "num_layers" : "num_hidden_layers";
  decoder.layers = uniform_layers(config.integer(layers), 0);
  read_ropes(config, {{.default_theta = 5e5}}, decoder);
  return decoder;
}

DecoderConfig read_jais2(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kJais2Defaults);
  read_plain_mlp(config, "hidden_act", "relu2", decoder);
  decoder.qkv_bias = decoder.output_bias = config.boolean("attention_bias", true);
  decoder.mlp_bias = config.boolean("mlp_bias", true);
  use_layer_norms(decoder);
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

DecoderConfig read_nemotron(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kDenseNemotronDefaults);
  read_plain_mlp(config, "hidden_act", "relu2", decoder);
  read_biases(config, "attention_bias", "mlp_bias", decoder);
  use_layer_norms(decoder);
  decoder.norm_weight_offset = static_cast<float>(config.number(kNormWeightOffsetField, 1.0));
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{.rotates_part = true, .default_share = 0.5}}, decoder);
  return decoder;
}

DecoderConfig read_helium(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_plain(config, weights, kHeliumDefaults);
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.mlp_bias = config.boolean("mlp_bias", false);
  decoder.rope_pairs = RopePairs::neighbours;
  return decoder;
}

DecoderConfig read_ernie4_5(const HfConfig& config, const WeightReader& weights) {
  constexpr double kTheta = 500000.0;
  DecoderConfig decoder = read_plain(config, weights, kErnieDefaults, kTheta);
  read_biases(config, "use_bias", "use_bias", decoder);
  decoder.rope_pairs = RopePairs::neighbours;
  return decoder;
}

DecoderConfig read_eurobert(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig encoder = read_plain(config, weights, kEuroBertDefaults);
  read_biases(config, "attention_bias", "mlp_bias", encoder);
  encoder.bidirectional = true;
  encoder.has_head = false;
  encoder.tied_head = false;
  return encoder;
}

// Every fourth layer has full attention, the first one too, unless layer_types lists them.
DecoderConfig read_cwm(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kWindow = 8192, kPattern = 4;
  DecoderConfig decoder = read_common(config, weights, kCwmDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.mlp_bias = config.boolean("mlp_bias", false);
  const int64_t num_layers = read_num_layers(config);
  std::vector<bool> sliding;
  for (int64_t i = 0; i < num_layers; ++i) sliding.push_back(i % kPattern != 0);
  decoder.layers =
      windowed_layers(config, read_sliding_layers(config, num_layers).value_or(sliding),
                      config.integer_or_null("sliding_window", kWindow));
  read_ropes(config, {{.default_theta = 1e6, .otherwise = &cwm_rope()}}, decoder);
  return decoder;
}

}  // namespace paceline
