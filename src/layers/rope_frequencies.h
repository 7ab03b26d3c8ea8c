// The rotary frequencies of one kind of layer.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline {

struct RopeConfig;

// The angles that one position adds, [rotary_dim / 2], as transformers' modeling_rope_utils
// computes them: step by step in float32. Exact ones would differ from those by up to 6 units in
// the last place, which is more than 0.001 at position 4,096; models were trained with the rounded
// ones. `stretched` is RopeConfig::stretched_length.
std::vector<float> rope_frequencies(const RopeConfig& config, int64_t rotary_dim,
                                    int64_t stretched);

}  // namespace paceline
