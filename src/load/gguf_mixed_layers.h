// The layers of a GGUF file that differ in their heads, share keys and values, or have inputs of
// their own (Gemma 4), as fields of a config.json.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "load/gguf_fields.h"

namespace paceline {

// Heads of keys and values in the layers with a window; in the others where all have none.
int64_t gguf_windowed_key_heads(const GgufFields& fields);

// Columns of the first layer's MLP.
int64_t gguf_first_mlp_size(const GgufFields& fields);

// Adds the ropes, the sizes of layers without a window, the number of layers that share keys and
// values, the widths of MLPs and of layers' inputs. The caller bounds `layers`.
void add_gguf_mixed_layers(const GgufFile& file, const GgufFields& fields, int64_t layers,
                           Json::Object& config);

}  // namespace paceline
