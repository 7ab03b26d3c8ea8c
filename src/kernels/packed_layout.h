// The constants of the packed layout, for code that may include nothing else.
#pragma once

#include <cstdint>

namespace paceline {

// Columns of the product (rows of the weight matrix) per panel.
constexpr int64_t kPanelWidth = 32;
// K is cut into segments at absolute multiples of this; each is summed from zero, in order.
constexpr int64_t kSegmentLength = 1024;

// Incremented whenever the bytes of packed matrices change: prepared weights of another version are
// rebuilt (load/weights_key.h).
constexpr int kPanelLayoutVersion = 2;

}  // namespace paceline
