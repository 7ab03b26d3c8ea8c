#include "models/decoder_config.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace paceline {

int64_t DecoderConfig::stretched_length(int64_t length) const {
  int64_t longest = 0;
  for (const RopeConfig& rope : ropes) longest = std::max(longest, rope.stretched_length(length));
  return longest;
}

std::vector<float> DecoderConfig::query_factors(Indices<int32_t> positions) const {
  std::vector<float> factors;
  if (query_growth.beta == 0.0) return factors;
  factors.reserve(static_cast<size_t>(positions.size()));
  for (const int32_t position : positions.host()) {
    const auto periods =
        static_cast<double>((position + query_growth.offset) / query_growth.context);
    factors.push_back(static_cast<float>(1.0 + query_growth.beta * std::log1p(periods)));
  }
  return factors;
}

bool DecoderConfig::grows_queries(int64_t layer_index) const {
  const bool rotates = layers[static_cast<size_t>(layer_index)].rope_index != kNoRope;
  return query_growth.beta != 0.0 && !(query_growth.unrotated_alone && rotates);
}

bool DecoderConfig::has_chunks() const {
  return std::ranges::any_of(layers, &LayerConfig::chunked);
}

namespace {

bool has_state(const LayerConfig& layer) {
  return layer.mixer != MixerKind::attention && layer.mixer != MixerKind::none;
}

}  // namespace

bool DecoderConfig::has_states() const { return std::ranges::any_of(layers, has_state); }

bool DecoderConfig::has_state_matrices() const {
  return delta_net.has_value() || mamba1.has_value() || mamba2.has_value();
}

int64_t DecoderConfig::stored_layer(int64_t layer_index) const {
  const auto before = layers.begin() + layer_index;
  return layer_index - std::count_if(layers.begin(), before,
                                     [](const LayerConfig& layer) { return layer.joins_next; });
}

namespace {

// A size of a layer where it has its own, else the config's.
int64_t own_or(int64_t own, int64_t otherwise) { return own > 0 ? own : otherwise; }

}  // namespace

int64_t DecoderConfig::head_dim_of(int64_t layer_index) const {
  return own_or(layers[static_cast<size_t>(layer_index)].head_dim, head_dim);
}

int64_t DecoderConfig::num_kv_heads_of(int64_t layer_index) const {
  return own_or(layers[static_cast<size_t>(layer_index)].num_kv_heads, num_kv_heads);
}

int64_t DecoderConfig::intermediate_size_of(int64_t layer_index) const {
  return own_or(layers[static_cast<size_t>(layer_index)].intermediate_size, intermediate_size);
}

int64_t DecoderConfig::rotary_dim_of(const RopeConfig& rope) const {
  return own_or(rope.rotary_dim, rotary_dim);
}

int64_t DecoderConfig::most_head_dim() const {
  int64_t most = head_dim;
  for (const LayerConfig& layer : layers) most = std::max(most, layer.head_dim);
  return most;
}

int64_t DecoderConfig::most_intermediate_size() const {
  int64_t most = intermediate_size;
  for (const LayerConfig& layer : layers) most = std::max(most, layer.intermediate_size);
  return most;
}

bool DecoderConfig::shares_cache(int64_t layer_index) const {
  return layers[static_cast<size_t>(layer_index)].shares_cache_of != kOwnCache;
}

const BlockNorms& DecoderConfig::norms_of(int64_t layer_index) const {
  return state_norms && has_state(layers[static_cast<size_t>(layer_index)]) ? *state_norms : norms;
}

namespace {

LayerGroup group_of(const LayerConfig& layer) {
  const bool is_recurrent = has_state(layer);
  return {.is_recurrent = is_recurrent,
          .window = is_recurrent ? 0 : layer.window,
          .holds_open_rows = false};
}

}  // namespace

std::vector<LayerGroup> cache_groups(const DecoderConfig& config) {
  std::set<LayerGroup> groups;
  for (const LayerConfig& layer : config.layers) {
    if (layer.mixer != MixerKind::none) groups.insert(group_of(layer));
  }
  std::vector<LayerGroup> all(groups.begin(), groups.end());
  if (!all.empty() && all.back().is_recurrent) {
    all.push_back({.is_recurrent = true, .window = 0, .holds_open_rows = true});
  }
  return all;
}

int cache_group_of(const DecoderConfig& config, int64_t layer_index) {
  const LayerConfig& layer = config.layers[static_cast<size_t>(layer_index)];
  if (layer.mixer == MixerKind::none) return 0;
  const auto groups = cache_groups(config);
  const LayerGroup own = group_of(layer);
  return static_cast<int>(std::find(groups.begin(), groups.end(), own) - groups.begin());
}

LayerStateElements state_elements(const DecoderConfig& config, int64_t layer_index) {
  switch (config.layers[static_cast<size_t>(layer_index)].mixer) {
    case MixerKind::attention:
    case MixerKind::none:
      break;
    case MixerKind::delta_net:
      return config.delta_net->state_elements();
    case MixerKind::convolution:
      return convolution_state_elements(*config.convolution, config.hidden_size);
    case MixerKind::mamba1:
      return config.mamba1->state_elements();
    case MixerKind::mamba2:
      return config.mamba2->state_elements();
  }
  return {};
}

KvLayer kv_layer(const DecoderConfig& config, int64_t layer_index, DType state_dtype) {
  const LayerConfig& layer = config.layers[static_cast<size_t>(layer_index)];
  if (layer.mixer == MixerKind::none) return {};
  if (config.shares_cache(layer_index)) return {.shares_with = layer.shares_cache_of};
  return {.num_kv_heads = config.num_kv_heads_of(layer_index),
          .head_dim = config.head_dim_of(layer_index),
          .states = state_elements(config, layer_index),
          .state_dtype = state_dtype,
          .values_in_keys = config.values_in_keys()};
}

int64_t state_matrix_elements(const DecoderConfig& config, int64_t layer_index) {
  const MixerKind mixer = config.layers[static_cast<size_t>(layer_index)].mixer;
  if (mixer == MixerKind::delta_net) return config.delta_net->matrix_elements();
  if (mixer == MixerKind::mamba1) return config.mamba1->matrix_elements();
  if (mixer == MixerKind::mamba2) return config.mamba2->matrix_elements();
  return 0;
}

}  // namespace paceline
