#include "models/block_projections.h"

#include <fmt/format.h>

namespace paceline {

std::vector<BlockProjection> block_projections(const DecoderConfig& config, int64_t layer_index) {
  const int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const int64_t q = config.num_heads * config.head_dim;
  const int64_t kv = config.num_kv_heads * config.head_dim;
  std::vector<BlockProjection> parts;
  if (config.fused_qkv) {
    parts.push_back({"self_attn.qkv_proj", BlockProduct::qkv, 0, q + 2 * kv, hidden});
  } else {
    parts.push_back({"self_attn.q_proj", BlockProduct::qkv, 0, q, hidden});
    parts.push_back({"self_attn.k_proj", BlockProduct::qkv, q, kv, hidden});
    parts.push_back({"self_attn.v_proj", BlockProduct::qkv, q + kv, kv, hidden});
  }
  parts.push_back({"self_attn.o_proj", BlockProduct::output, 0, hidden, q});
  if (config.layers[static_cast<size_t>(layer_index)].is_mixture) return parts;
  if (config.fused_gate_up) {
    parts.push_back({"mlp.gate_up_proj", BlockProduct::gate_up, 0, 2 * inner, hidden});
  } else {
    if (config.gated_mlp) {
      parts.push_back({"mlp.gate_proj", BlockProduct::gate_up, 0, inner, hidden});
    }
    const int64_t first = config.gated_mlp ? inner : 0;
    parts.push_back({"mlp." + config.mlp_up, BlockProduct::gate_up, first, inner, hidden});
  }
  parts.push_back({"mlp." + config.mlp_down, BlockProduct::down, 0, hidden, inner});
  return parts;
}

std::string projection_names(const std::vector<BlockProjection>& projections) {
  std::string names;
  for (const BlockProjection& projection : projections) {
    names += names.empty() ? "" : ", ";
    names += projection.part;
  }
  return names;
}

}  // namespace paceline
