// Falcon-H1 (transformers' modeling_falcon_h1): in each layer Mamba 2 and attention read the same
// norm, and both are added; multipliers after most products.
#include <fmt/format.h>

#include <array>

#include "models/family.h"
#include "models/mamba2_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kFalconDefaults = {.vocab_size = 128000,
                                            .num_heads = 32,
                                            .num_kv_heads = 8,
                                            .intermediate_size = 14336,
                                            .max_position = 8192,
                                            .norm_eps = 1e-5};

// `count` multipliers, or 1 each.
std::vector<float> read_multipliers(const HfConfig& config, std::string_view key, size_t count) {
  const auto found = config.find(key);
  if (!found) return std::vector<float>(count, 1.0f);
  const auto items = found->items();
  if (items.size() != count) {
    config.invalid(key, fmt::format("{} multipliers, expected {}", items.size(), count));
  }
  std::vector<float> multipliers;
  constexpr double kLargest = 1e6;
  for (const JsonCursor& item : items) {
    multipliers.push_back(static_cast<float>(item.number({.min = -kLargest, .max = kLargest})));
  }
  return multipliers;
}

// A product's input isn't multiplied: its output is. With a bias that isn't the same.
double read_input_multiplier(const HfConfig& config, std::string_view key, bool has_bias) {
  const double multiplier = config.number(key);
  if (has_bias && multiplier != 1.0) {
    config.unsupported(key, "isn't supported beside biases of the product that it changes");
  }
  return multiplier;
}

// Two of ours for each of the files.
std::vector<LayerConfig> read_joined_layers(const HfConfig& config) {
  std::vector<LayerConfig> layers;
  for (int64_t i = 0; i < read_num_layers(config); ++i) {
    layers.push_back({.mixer = MixerKind::mamba2, .has_mlp = false, .joins_next = true});
    layers.push_back({.mixer = MixerKind::attention});
  }
  return layers;
}

void read_multiplied_mamba(const HfConfig& config, DecoderConfig& decoder) {
  const int64_t inner = config.is_null("mamba_d_ssm")
                            ? read_expanded_size(config, decoder.hidden_size)
                            : config.integer("mamba_d_ssm", 1024);
  read_mamba2(config, {}, inner, decoder);
  Mamba2Config& mamba = *decoder.mamba2;
  mamba.output_bias = config.boolean("projectors_bias", false);
  mamba.norm = !config.boolean("mamba_rms_norm", false)         ? GatedNorm::none
               : config.boolean("mamba_norm_before_gate", true) ? GatedNorm::norm_first
                                                                : GatedNorm::gate_first;
  mamba.output_scale = static_cast<float>(config.number("ssm_out_multiplier"));
  const double input = read_input_multiplier(config, "ssm_in_multiplier", mamba.input_bias);
  const std::vector<float> parts = read_multipliers(config, "ssm_multipliers", 5);
  for (size_t i = 0; i < parts.size(); ++i) {
    mamba.input_scales[i] = static_cast<float>(input) * parts[i];
  }
}

}  // namespace

DecoderConfig read_falcon_h1(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kFalconDefaults);
  read_bamba_block(config, decoder);
  decoder.embedding_scale = static_cast<float>(config.number("embedding_multiplier"));
  decoder.logits_scale = static_cast<float>(config.number("lm_head_multiplier"));
  // Scores have those of queries and keys; values that of the input.
  const double input = read_input_multiplier(config, "attention_in_multiplier", decoder.qkv_bias);
  decoder.attention_scale *= static_cast<float>(input * input * config.number("key_multiplier"));
  decoder.attention_output_scale =
      static_cast<float>(input * config.number("attention_out_multiplier"));
  const std::vector<float> of_mlp = read_multipliers(config, "mlp_multipliers", 2);
  decoder.mlp_gate_scale = of_mlp[0];
  decoder.mlp_output_scale = of_mlp[1];
  decoder.multiplied_weights = config.boolean(kMultipliedWeightsField, false);
  decoder.layers = read_joined_layers(config);
  read_multiplied_mamba(config, decoder);
  read_ropes(config, {{}}, decoder);
  return decoder;
}

}  // namespace paceline
