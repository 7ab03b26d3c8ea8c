// The projections of a decoder's blocks, by name, and where their outputs stand among those of the
// products that they are packed in.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "layers/adapter_weights.h"
#include "models/decoder_config.h"

namespace paceline {

struct BlockProjection {
  std::string_view part;  // of a module's name: "self_attn.q_proj" of "layers.3.self_attn.q_proj"
  BlockProduct product = BlockProduct::qkv;
  int64_t first_column = 0;  // of the product
  int64_t out_features = 0;
  int64_t in_features = 0;
};

constexpr size_t kNumBlockProjections = 7;

// In the order in which a block computes them.
std::array<BlockProjection, kNumBlockProjections> block_projections(const DecoderConfig& config);

}  // namespace paceline
