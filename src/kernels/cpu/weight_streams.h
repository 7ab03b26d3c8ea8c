// WeightStreams is how products of a few rows read weights from memory. What is fastest differs by
// processor; no choice changes a bit.
#pragma once

#include <cstdint>

namespace paceline {

struct WeightStreams {
  int64_t panels = 2;             // read side by side, at most
  int64_t prefetch_bytes = 4096;  // from a weight that is used to the one that is prefetched

  bool operator==(const WeightStreams&) const = default;
};

}  // namespace paceline
