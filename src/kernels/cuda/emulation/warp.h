// Warp is 32 lanes that wait for one another and exchange values.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/cuda/emulation/call_site.h"
#include "kernels/cuda/emulation/lane_order.h"

namespace paceline::cuda::emulation {

// What a lane brings to an operation of its warp, and what it takes away.
struct LaneSlot {
  std::array<uint32_t, 10> in{};
  std::array<uint32_t, 4> out{};
};
using LaneSlots = std::array<LaneSlot, 32>;

// Fills every lane's `out` from all lanes' `in`.
using WarpOperation = void (*)(LaneSlots& slots);

struct Warp {
  static constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

  LaneSlots slots;
  uint32_t ready = kAllLanes;  // bit: the lane waits for nothing
  uint32_t arrived = 0;        // bit: the lane waits in `operation`
  WarpOperation operation = nullptr;
  CallSite site;
  // A round lets each lane that was ready at its start run once.
  LaneOrder order;
  uint32_t position = 32;  // in `order`
  uint32_t pending = 0;    // lanes that the round has left

  void begin_round(LaneOrder next_order) {
    order = next_order;
    position = 0;
    pending = ready;
  }
  // The lane that is next in the round; -1 at its end.
  int next_lane() {
    while (position < 32) {
      const uint32_t lane = order.lane_at(position++);
      if ((pending >> lane & 1u) != 0) return static_cast<int>(lane);
    }
    return -1;
  }
};

}  // namespace paceline::cuda::emulation
