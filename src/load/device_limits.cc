#include "load/device_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace paceline {

void check_device_takes(const DecoderConfig& config, const BackendLimits& limits,
                        const std::string& where) {
  const auto check = [&](std::string_view field, int64_t found, int64_t most) {
    if (found <= most) return;
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: {}: found {}, expected at most {}, which is what kernels for GPUs "
                            "take; --device cpu runs the model",
                            where, field, found, most));
  };
  const auto has = [&](MixerKind kind) {
    return std::ranges::count(config.layers, kind, &LayerConfig::mixer) > 0;
  };
  if (config.latent && !limits.values_in_keys) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: kv_lora_rank: multi-head latent attention has no kernels for "
                            "GPUs; --device cpu runs the model",
                            where));
  }
  if (config.has_position_scores() && !limits.position_scores) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: scores of attention that depend on distances (ALiBi, MPNet, "
                            "DeBERTa) have no kernels for GPUs; --device cpu runs the model",
                            where));
  }
  if (config.value_norm && !limits.mixed_layers) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: model_type: {} has norms of values and layers that differ, for "
                            "which there are no kernels for GPUs; --device cpu runs the model",
                            where, config.family));
  }
  if (config.xielu && !limits.xielu) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: hidden_act: xielu has no kernels for GPUs; --device cpu runs the "
                            "model",
                            where));
  }
  if (config.has_chunks() && !limits.chunks) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: attention_chunk_size: attention to chunks of the context has no "
                            "kernels for GPUs; --device cpu runs the model",
                            where));
  }
  if (config.mixture && !limits.sparse_mixer &&
      (config.mixture->routing.score == ExpertScore::sparse_mixer ||
       config.mixture->scales_inputs)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: model_type: {}'s choice of experts has no kernels for GPUs; "
                            "--device cpu runs the model",
                            where, config.family));
  }
  if (config.clip_qkv > 0 && !limits.clamp) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: clip_qkv: clipped queries, keys and values have no kernels for "
                            "GPUs; --device cpu runs the model",
                            where));
  }
  if (has(MixerKind::attention)) check("head_dim", config.most_head_dim(), limits.head_dim);
  if (config.delta_net) {
    check("linear_key_head_dim", config.delta_net->key_dim, limits.state_keys);
    if (config.delta_net->channel_decay && !limits.channel_decay) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: delta nets with a decay for each channel have no kernels for "
                              "GPUs; --device cpu runs the model",
                              where));
    }
  }
  if (config.mamba1) {
    check(config.mamba1->state_size_field, config.mamba1->state_size, limits.scan_states);
  }
  if (config.mamba2) {
    check(config.mamba2->state_size_field, config.mamba2->state_size, limits.state_keys);
  }
  if (config.mixture) {
    check("num_experts", config.mixture->routing.num_experts, limits.num_experts);
  }
}

}  // namespace paceline
