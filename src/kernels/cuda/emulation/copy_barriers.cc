#include "kernels/cuda/emulation/copy_barriers.h"

#include <cstring>

namespace paceline::cuda::emulation {

void CopyBarriers::Barrier::land(Copy& copy) {
  if (copy.has_landed) return;
  std::memcpy(copy.to, copy.from, copy.bytes);
  copy.has_landed = true;
  missing_bytes -= copy.bytes;
}

bool CopyBarriers::Barrier::try_pass() {
  for (Copy& copy : copies) land(copy);
  if (missing > 0 || missing_bytes != 0) return false;
  copies.clear();
  missing = arrivals;
  ++phase;
  return true;
}

void CopyBarriers::init(const void* place, uint32_t arrivals) {
  Barrier* barrier = find(place);
  if (barrier == nullptr) barrier = &barriers_.emplace_back();
  *barrier = {.place = place, .arrivals = arrivals, .missing = arrivals};
}

CopyBarriers::Barrier* CopyBarriers::find(const void* place) {
  for (Barrier& barrier : barriers_) {
    if (barrier.place == place) return &barrier;
  }
  return nullptr;
}

const CallSite* CopyBarriers::first_site() const {
  for (const Barrier& barrier : barriers_) {
    if (!barrier.copies.empty()) return &barrier.copies.front().site;
  }
  return nullptr;
}

}  // namespace paceline::cuda::emulation
