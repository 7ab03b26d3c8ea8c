// Reads the fields of config.json that describe multi-head latent attention.
#pragma once

#include <optional>

#include "models/family.h"

namespace paceline {

// A family's defaults, and how it differs from DeepSeek V3's attention.
struct LatentDefaults {
  std::optional<int64_t> query_rank = 1536;  // without the field; null: no latent of the queries
  int64_t rank = 512;
  int64_t nope_dim = 128;
  int64_t rope_dim = 64;
  std::optional<int64_t> value_dim = 128;  // else hidden size / heads
  bool interleaved = true;                 // the rope's pairs, without rope_interleave
  bool has_interleave_field = true;
  bool has_rope = true;
  RopeFields rope = {};
  bool rope_of_whole_head = false;  // the share that rotates is one of nope_dim + rope_dim
};

// Sets `latent` and the fields of attention, and the ropes, of what read_common() has read.
void read_latent_attention(const HfConfig& config, const LatentDefaults& defaults,
                           DecoderConfig& decoder);

}  // namespace paceline
