// RingPlace is a place in a ring of copies in shared memory.
#pragma once

#include "kernels/cuda/code/device_code.h"

namespace paceline::cuda {

// Which stage of the ring is next, and the parity of its phase.
template <uint32_t kStages>
struct RingPlace {
  uint32_t slot = 0;
  uint32_t parity = 0;

  PL_DEVICE void advance() {
    if (++slot < kStages) return;
    slot = 0;
    parity ^= 1;
  }
};

}  // namespace paceline::cuda
