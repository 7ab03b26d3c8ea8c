// WeightStreams is how products of a few rows read weights from memory. The fastest choice differs
// by processor; no choice changes a bit.
#pragma once

#include <cstdint>

namespace paceline {

struct WeightStreams {
  int64_t panels = 2;             // read side by side, at most
  int64_t prefetch_bytes = 4096;  // prefetch distance

  bool operator==(const WeightStreams&) const = default;
};

}  // namespace paceline
