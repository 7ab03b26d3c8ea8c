// The projections of a decoder's blocks, by name, and where their outputs stand among those of the
// products that they are packed in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/adapter_weights.h"
#include "models/decoder_config.h"

namespace paceline {

struct BlockProjection {
  std::string part;  // of a module's name: "self_attn.q_proj" of "layers.3.self_attn.q_proj"
  BlockProduct product = BlockProduct::qkv;
  int64_t first_column = 0;  // of the product
  int64_t out_features = 0;
  int64_t in_features = 0;
};

// Of one layer, in the order in which its block computes them; those of experts aren't among them.
std::vector<BlockProjection> block_projections(const DecoderConfig& config, int64_t layer_index);
// Their parts' names, for messages.
std::string projection_names(const std::vector<BlockProjection>& projections);

}  // namespace paceline
