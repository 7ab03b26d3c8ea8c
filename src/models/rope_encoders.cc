// Encoders with the block of BERT that rotate queries and keys instead of adding positions: Nomic
// BERT (Nussbaum et al., 2024) and the new GTE (Zhang et al., "mGTE", 2024), by the configs of
// transformers' modeling_nomic_bert and modeling_gte and by those of the code that was published
// beside their weights. Both have a gated MLP.
#include <cmath>

#include "models/encoder_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults nomic_defaults(SizeNames names, std::string_view eps_key) {
  return {.vocab_size = 30528,
          .num_heads = 12,
          .intermediate_size = 3072,
          .max_position = 2048,
          .norm_eps_key = eps_key,
          .norm_eps = 1e-12,
          .hidden_size = 768,
          .names = names};
}
constexpr CommonDefaults kNomicDefaults = nomic_defaults({}, "layer_norm_eps");
constexpr CommonDefaults kOldNomicDefaults =
    nomic_defaults({.hidden_size = "n_embd", .intermediate_size = "n_inner", .num_heads = "n_head"},
                   "layer_norm_epsilon");

constexpr CommonDefaults gte_defaults(int64_t vocab_size) {
  return {.vocab_size = vocab_size,
          .num_heads = 12,
          .intermediate_size = 3072,
          .max_position = 8192,
          .norm_eps_key = "layer_norm_eps",
          .norm_eps = 1e-12,
          .hidden_size = 768};
}
constexpr CommonDefaults kGteDefaults = gte_defaults(250048);
constexpr CommonDefaults kNewDefaults = gte_defaults(30528);

constexpr int64_t kLayers = 12;

DecoderConfig read_block(const HfConfig& config, const WeightReader& weights,
                         const CommonDefaults& defaults, int64_t default_types) {
  DecoderConfig encoder = read_common(config, weights, defaults);
  set_encoder(encoder);
  set_norms_behind(encoder);
  check_is_encoder(config);
  encoder.num_token_types = config.integer("type_vocab_size", default_types);
  encoder.fused_qkv = true;
  return encoder;
}

// A field of the published code that must have the value without an effect.
void check_flag(const HfConfig& config, std::string_view key, bool inert) {
  if (config.boolean(key, inert) == inert) return;
  config.unsupported(key,
                     inert ? "false isn't supported; true is" : "true isn't supported; false is");
}

// By the config of nomic-embed-text: sizes as GPT-2's, and what else its code can do.
DecoderConfig read_old_nomic(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kTypes = 2, kContext = 2048;
  for (const std::string_view key : {"prenorm", "use_rms_norm", "parallel_block", "mlp_fc1_bias",
                                     "rotary_emb_interleaved", "causal"}) {
    check_flag(config, key, false);
  }
  DecoderConfig encoder = read_block(config, weights, kOldNomicDefaults, kTypes);
  if (const std::string kind = config.string("activation_function", "swiglu"); kind != "swiglu") {
    config.unsupported("activation_function", "only swiglu is supported in this family");
  }
  encoder.max_position = config.integer("n_positions", encoder.max_position);
  encoder.qkv_bias = encoder.output_bias = config.boolean("qkv_proj_bias", false);
  encoder.mlp_down_bias = config.boolean("mlp_fc2_bias", false);
  encoder.layers = uniform_layers(config.integer("n_layer", kLayers), 0);
  read_ropes(config,
             {{.theta_key = "rotary_emb_base",
               .default_theta = 1000.0,
               .rotates_part = true,
               .default_share = config.number("rotary_emb_fraction", 1.0)}},
             encoder);
  if (config.has("rotary_scaling_factor")) {
    RopeConfig& rope = encoder.ropes.front();
    rope.scaling = RopeScaling::dynamic;
    rope.factor = config.number("rotary_scaling_factor");
    rope.original_max_position =
        static_cast<double>(config.integer("max_trained_positions", kContext));
  }
  return encoder;
}

// The scaling "ntk" of GTE's code: the base times the factor, and frequencies divided by the
// factor's power of 2 / dim, or with `mixed_b` by exp(a * i^mixed_b).
void read_fixed_ntk(const HfConfig& scaling, double theta, DecoderConfig& encoder) {
  const double factor = scaling.number("factor");
  const auto pairs =
      static_cast<double>(encoder.head_dim / 2);  // NOLINT(bugprone-integer-division)
  encoder.rotary_dim = encoder.head_dim;
  RopeConfig rope{.theta = theta, .scaling = RopeScaling::linear};
  if (!scaling.has("mixed_b")) {
    rope.theta = theta * factor;
    rope.factor = std::pow(factor, 1.0 / pairs);
  } else {
    const double power = scaling.number("mixed_b");
    const double a = std::log(factor) / std::pow(pairs, power);
    rope.scaling = RopeScaling::by_frequency;
    for (int64_t i = 1; i <= encoder.head_dim / 2; ++i) {
      const double divisor = std::exp(a * std::pow(static_cast<double>(i), power));
      rope.frequency_divisors.push_back(static_cast<float>(divisor));
    }
  }
  encoder.ropes.push_back(rope);
}

DecoderConfig read_gte_block(const HfConfig& config, const WeightReader& weights,
                             const CommonDefaults& defaults, int64_t default_types) {
  DecoderConfig encoder = read_block(config, weights, defaults, default_types);
  encoder.activation = read_activation(config, "hidden_act", "gelu");
  encoder.qkv_bias = encoder.output_bias = true;
  encoder.mlp_down_bias = true;
  encoder.fused_gate_up = encoder.up_first = true;
  encoder.layers = uniform_layers(config.integer("num_hidden_layers", kLayers), 0);
  return encoder;
}

}  // namespace

DecoderConfig read_nomic_bert(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kTypes = 2;
  if (config.has("n_embd")) return read_old_nomic(config, weights);
  DecoderConfig encoder = read_block(config, weights, kNomicDefaults, kTypes);
  encoder.activation = read_activation(config, "hidden_act", "silu");
  encoder.layers = uniform_layers(config.integer("num_hidden_layers", kLayers), 0);
  read_ropes(config, {{.default_theta = 1000.0}}, encoder);
  return encoder;
}

DecoderConfig read_gte(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig encoder = read_gte_block(config, weights, kGteDefaults, 1);
  read_ropes(config, {{.default_theta = 160000.0}}, encoder);
  return encoder;
}

// The published config of GTE, whose model_type is "new".
DecoderConfig read_new_gte(const HfConfig& config, const WeightReader& weights) {
  constexpr double kTheta = 10000.0;
  check_flag(config, "logn_attention_scale", false);
  if (config.string("position_embedding_type", "rope") != "rope") {
    config.unsupported("position_embedding_type", "only rope is supported in this family");
  }
  if (config.string("layer_norm_type", "layer_norm") != "layer_norm") {
    config.unsupported("layer_norm_type", "only layer_norm is supported");
  }
  DecoderConfig encoder = read_gte_block(config, weights, kNewDefaults, 0);
  const auto scaling = config.find("rope_scaling");
  if (scaling && HfConfig(*scaling).string("type", "") == "ntk") {
    read_fixed_ntk(HfConfig(*scaling), config.number("rope_theta", kTheta), encoder);
  } else {
    read_ropes(config, {{.default_theta = kTheta}}, encoder);
  }
  return encoder;
}

}  // namespace paceline
