// The layers with states of a GGUF file: as fields of a config.json, and the order of their
// tensors.
#pragma once

#include <cstdint>
#include <optional>

#include "base/json.h"
#include "load/gguf_fields.h"
#include "weights/gguf_checkpoint.h"

namespace paceline {

// Heads of keys and values in the layers that are attention, a list's zeros left out.
int64_t gguf_key_heads(const GgufFields& fields);

// Columns of the layers' MLPs, a list's zeros left out.
int64_t gguf_mlp_size(const GgufFields& fields);

// Adds `layer_types` and the sizes of the architecture's mixers. The caller bounds `layers`.
void add_gguf_mixers(const GgufFile& file, const GgufFields& fields, int64_t layers,
                     Json::Object& config);

// The sizes of gated delta nets.
struct GgufDeltaNet {
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
};
GgufDeltaNet gguf_delta_net(const GgufFields& fields);

// Fills in the shape of a tensor of a layer with a state where the file has another one: taps
// without the 1 between, and vectors of Mamba 2 with one.
void set_state_shape(GgufMixers mixers, GgufTensorName& name);

// Fills in how the file has a tensor of a delta net. convert_hf_to_gguf.py takes turns of the
// groups of value heads that share a key head, in all rows and columns of value heads.
void set_delta_net_order(const GgufDeltaNet& sizes, GgufTensorName& name);

}  // namespace paceline
