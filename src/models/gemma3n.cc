// Gemma 3n (transformers' modeling_gemma3n): several residual streams (AltUp), a learned residual
// beside attention (Laurel), MLPs whose gates keep their largest elements, an input of each token
// for each layer, layers that read an earlier one's keys and values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/family.h"
#include "models/layer_fields.h"

namespace paceline {
namespace {

constexpr int64_t kGemma3nPattern = 5;  // every fifth layer has full attention
constexpr int64_t kGemma3nWindow = 512;
constexpr int64_t kGemma3nSharedLayers = 15;
constexpr int64_t kGemma3nInputSize = 256;
constexpr CommonDefaults kGemma3nDefaults = {.vocab_size = 262400,
                                             .num_heads = 8,
                                             .num_kv_heads = 2,
                                             .head_dim = 256,
                                             .intermediate_size = 16384,
                                             .max_position = 32768,
                                             .tied_head = true};

// The number that a normal variable is below with this probability, by Newton's method.
double normal_quantile(double probability) {
  double x = 0.0;
  for (int i = 0; i < 100; ++i) {
    const double found = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
    const double step = (found - probability) / density;
    x -= std::clamp(step, -0.5, 0.5);
    if (std::abs(step) < 1e-14) break;
  }
  return x;
}

// One size for all layers, or a list of one for each.
void read_inner_sizes(const HfConfig& config, DecoderConfig& decoder) {
  constexpr std::string_view kKey = "intermediate_size";
  const auto found = config.find(kKey);
  if (!found || !found->is_array()) {
    decoder.intermediate_size = config.integer(kKey, kGemma3nDefaults.intermediate_size);
    return;
  }
  const auto sizes = found->items();
  if (std::ssize(sizes) != decoder.num_layers()) {
    config.invalid(kKey,
                   fmt::format("{} entries for {} layers", sizes.size(), decoder.num_layers()));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    decoder.layers[i].intermediate_size = sizes[i].integer({.min = 1, .max = 1 << 22});
  }
  decoder.intermediate_size = decoder.layers.front().intermediate_size;
}

// The share of gates that don't pass, by layer; 0: all pass.
void read_sparsity(const HfConfig& config, std::vector<LayerConfig>& layers) {
  constexpr std::string_view kKey = "activation_sparsity_pattern";
  constexpr size_t kSparseLayers = 10;
  constexpr double kLeastSparse = 1e-6, kMostSparse = 0.9999;
  std::vector<double> shares(layers.size(), 0.0);
  if (const auto found = config.find(kKey)) {
    const auto items = found->items();
    if (items.size() != layers.size()) {
      config.invalid(kKey, fmt::format("{} entries for {} layers", items.size(), layers.size()));
    }
    for (size_t i = 0; i < items.size(); ++i) {
      shares[i] = items[i].number({.min = 0.0, .max = kMostSparse});
      if (shares[i] > 0.0 && shares[i] < kLeastSparse) {
        config.invalid(kKey, fmt::format("found {}, expected 0, or {} to {}", shares[i],
                                         kLeastSparse, kMostSparse));
      }
    }
  } else if (layers.size() > kSparseLayers) {
    std::fill_n(shares.begin(), kSparseLayers, 0.95);
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    if (shares[i] > 0.0) {
      layers[i].gate_deviations = static_cast<float>(normal_quantile(shares[i]));
    }
  }
}

void read_gemma3n_streams(const HfConfig& config, DecoderConfig& decoder) {
  const AltUpConfig streams = {.num_streams = config.integer("altup_num_inputs", 4),
                               .active = config.integer("altup_active_idx", 0),
                               .scales_corrected = config.boolean("altup_correct_scale", true)};
  if (streams.active >= streams.num_streams) {
    config.invalid("altup_active_idx", fmt::format("{}, expected less than altup_num_inputs {}",
                                                   streams.active, streams.num_streams));
  }
  decoder.alternating = streams;
}

std::vector<LayerConfig> read_gemma3n_layers(const HfConfig& config) {
  const int64_t num_layers = read_num_layers(config);
  const std::vector<bool> sliding = read_sliding_layers(config, num_layers)
                                        .value_or(sliding_pattern(num_layers, kGemma3nPattern));
  auto layers =
      windowed_layers(config, sliding, config.integer_or_null("sliding_window", kGemma3nWindow));
  for (size_t i = 0; i < layers.size(); ++i) layers[i].rope_index = sliding[i] ? 1 : 0;
  return layers;
}

// The field may be a list, which read_common() doesn't know.
HfConfig without_inner_sizes(const HfConfig& config, Json& kept) {
  Json::Object members;
  for (const auto& [key, value] : config.object().object()) {
    if (key != "intermediate_size") members.emplace_back(key, value);
  }
  kept = Json(std::move(members));
  return HfConfig(JsonCursor(kept, config.object().where()));
}

}  // namespace

DecoderConfig read_gemma3n(const HfConfig& config, const WeightReader& weights) {
  Json kept;
  DecoderConfig decoder = read_common(without_inner_sizes(config, kept), weights, kGemma3nDefaults);
  decoder.head_dim = config.integer("head_dim", *kGemma3nDefaults.head_dim);
  decoder.activation = read_activation(config, "hidden_activation", "gelu_pytorch_tanh");
  decoder.norms = kNormsAround;
  decoder.embedding_scale = std::sqrt(static_cast<float>(decoder.hidden_size));
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.qk_norm = QkNorm::head;
  decoder.value_norm = true;
  decoder.attention_scale = 1.0f;
  decoder.final_soft_cap =
      static_cast<float>(config.number_or_null("final_logit_softcapping", 30.0).value_or(0.0));
  decoder.layers = read_gemma3n_layers(config);
  read_inner_sizes(config, decoder);
  read_sparsity(config, decoder.layers);
  read_ropes(
      config,
      {{.default_theta = 1e6},
       {.layer_type = "sliding_attention", .theta_key = "rope_local_base_freq", .scaled = false}},
      decoder);
  share_last_caches(config, kGemma3nSharedLayers, decoder.layers);
  read_layer_inputs(config, kGemma3nInputSize, decoder);
  read_gemma3n_streams(config, decoder);
  decoder.laurel_rank = config.integer("laurel_rank", 64);
  return decoder;
}

}  // namespace paceline
