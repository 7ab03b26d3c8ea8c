// The projections of a decoder's blocks, by name, and where their outputs stand among those of the
// products that they are packed in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/adapter_weights.h"
#include "layers/stored_rows.h"
#include "models/decoder_config.h"

namespace paceline {

constexpr int64_t kNoExpert = -1;

struct BlockProjection {
  std::string part;  // of a module's name: "self_attn.q_proj" of "layers.3.self_attn.q_proj"
  BlockProduct product = BlockProduct::qkv;
  int64_t first_column = 0;  // of the product
  int64_t out_features = 0;
  int64_t in_features = 0;
  int64_t expert = kNoExpert;          // as in Mixture::experts
  std::vector<StoredRows> order = {};  // as Projection::order
  bool has_bias = true;                // as Projection::has_bias
};

// What a layer's mixer is called within its block; nothing without one.
std::string mixer_name(const DecoderConfig& config, int64_t layer_index);

// Of one layer, in the order in which its block computes them; those of experts aren't among them.
std::vector<BlockProjection> block_projections(const DecoderConfig& config, int64_t layer_index);

// Those of the experts of one layer. Experts that are chosen are called "mlp.experts.3", whatever
// the model's files call them, and have a gate_proj, an up_proj and, of both together, a
// gate_up_proj, as transformers 5 has them. None in a dense layer.
std::vector<BlockProjection> expert_projections(const DecoderConfig& config, int64_t layer_index);
// Of the shared expert alone.
std::vector<BlockProjection> shared_projections(const DecoderConfig& config, int64_t layer_index);

// Of the router, and of the gate of the shared expert. None in a dense layer.
std::vector<BlockProjection> router_projections(const DecoderConfig& config, int64_t layer_index);

// The one of all these that is called `part`; nothing without one.
std::optional<BlockProjection> find_projection(const DecoderConfig& config, int64_t layer_index,
                                               std::string_view part);

// The same by the layer of the files, which may be several of the config's.
struct StoredProjection {
  int64_t layer = 0;  // of the config
  BlockProjection projection;
};
std::optional<StoredProjection> find_stored_projection(const DecoderConfig& config,
                                                       int64_t stored_layer, std::string_view part);
// The block_projections() of a layer of the files, by name, for messages.
std::string stored_projection_names(const DecoderConfig& config, int64_t stored_layer);

// An expert's name in the model's files, within its block.
std::string expert_name(const MixtureConfig& config, int64_t expert);
// What its projections are called there.
MlpNames expert_mlp_names(const MixtureConfig& config, int64_t expert);

// Their parts' names, for messages.
std::string projection_names(const std::vector<BlockProjection>& projections);

}  // namespace paceline
