// The windows and the rope scaling that a GGUF file says, as fields of a config.json.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "load/gguf_fields.h"

namespace paceline {

// `rope_scaling`; null: none. A table of divisors by frequency (rope_freqs.weight) becomes a
// longrope with the same factors for short and long texts. Throws Error unsupported naming another
// kind of scaling.
Json gguf_rope_scaling(const GgufFile& file, const GgufFields& fields, int64_t context);

// Adds `sliding_window`, and `layer_types` to architectures whose layers differ. `layers` is
// bounded by the caller.
void add_gguf_windows(const GgufFields& fields, int64_t layers, Json::Object& config);

}  // namespace paceline
