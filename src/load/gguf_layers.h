// The windows and the rope scaling of a GGUF file, as fields of a config.json.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "load/gguf_fields.h"

namespace paceline {

struct GgufRopeShape {
  int64_t rotated = 0;  // elements of a head
  int64_t context = 0;  // positions that the model was trained for
};

// `rope_scaling`; null: none. Divisors per frequency (rope_freqs.weight), and linear scaling that
// multiplies its angles, become a longrope with equal factors for short and long texts. Throws
// Error unsupported naming another kind of scaling.
Json gguf_rope_scaling(const GgufFile& file, const GgufFields& fields, const GgufRopeShape& shape);

// Adds `sliding_window` (null: none), and `layer_types` if layers differ. The caller bounds
// `layers`.
void add_gguf_windows(const GgufFields& fields, int64_t layers, Json::Object& config);

}  // namespace paceline
