#include "models/block_projections.h"

namespace paceline {

std::array<BlockProjection, kNumBlockProjections> block_projections(const DecoderConfig& config) {
  const int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const int64_t q = config.num_heads * config.head_dim;
  const int64_t kv = config.num_kv_heads * config.head_dim;
  return {{
      {"self_attn.q_proj", BlockProduct::qkv, 0, q, hidden},
      {"self_attn.k_proj", BlockProduct::qkv, q, kv, hidden},
      {"self_attn.v_proj", BlockProduct::qkv, q + kv, kv, hidden},
      {"self_attn.o_proj", BlockProduct::output, 0, hidden, q},
      {"mlp.gate_proj", BlockProduct::gate_up, 0, inner, hidden},
      {"mlp.up_proj", BlockProduct::gate_up, inner, inner, hidden},
      {"mlp.down_proj", BlockProduct::down, 0, hidden, inner},
  }};
}

}  // namespace paceline
