// LaneOrder is a permutation of a warp's 32 lanes: lane_at(i) = (stride i + first) mod 32.
#pragma once

#include <cstdint>

namespace paceline::cuda::emulation {

struct LaneOrder {
  uint32_t stride = 1;  // odd
  uint32_t first = 0;

  uint32_t lane_at(uint32_t i) const { return (stride * i + first) % 32; }
};

constexpr LaneOrder kAscendingLanes{};
constexpr LaneOrder kDescendingLanes{.stride = 31, .first = 31};

}  // namespace paceline::cuda::emulation
