// The windows and the rope scaling of a GGUF file, as fields of a config.json.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "load/gguf_fields.h"

namespace paceline {

struct GgufRopeShape {
  int64_t rotated = 0;  // elements of a head
  int64_t context = 0;  // positions that the model was trained for
};

// Adds `rope_scaling` where there is a scaling, or `rope_parameters` where the family needs them,
// to a config that has `rope_theta`. Divisors per frequency (rope_freqs.weight), and linear scaling
// that multiplies its angles, become a longrope with equal factors for short and long texts. Throws
// Error unsupported naming another kind of scaling.
void add_gguf_rope(const GgufFile& file, const GgufFields& fields, const GgufRopeShape& shape,
                   Json::Object& config);

// Adds a rope for each kind of layer, where those with a window rotate heads of another size. Those
// without have rope_freqs.weight: 1 for frequencies that a head has, huge for those that are 0.
void add_gguf_mixed_ropes(const GgufFile& file, const GgufFields& fields, Json::Object& config);

// Which layers have a window: a list in the file, or all but every pattern-th. The caller bounds
// `layers`.
std::vector<bool> gguf_windowed_layers(const GgufFields& fields, int64_t layers);

// Adds `sliding_window` (null: none), and `layer_types` if layers differ. The caller bounds
// `layers`.
void add_gguf_windows(const GgufFields& fields, int64_t layers, Json::Object& config);

}  // namespace paceline
