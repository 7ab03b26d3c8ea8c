// CopyBarriers are the barriers in a block's shared memory, and the copies that they wait for
// (mbarrier and cp.async.bulk of the PTX ISA).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/emulation/call_site.h"

namespace paceline::cuda::emulation {

class CopyBarriers {
 public:
  struct Copy {
    void* to;
    const void* from;
    uint32_t bytes;
    CallSite site;
    bool has_landed;
  };
  struct Barrier {
    const void* place = nullptr;  // in shared memory
    uint32_t arrivals = 0;        // of a phase
    uint32_t missing = 0;         // of this phase
    int64_t missing_bytes = 0;    // expected ones that haven't landed, of this phase
    uint64_t phase = 0;
    uint32_t waiting = 0;      // threads
    std::vector<Copy> copies;  // of this phase

    // Lands what has not. Returns whether the phase passes: another one begins.
    bool try_pass();
    void land(Copy& copy);
  };

  void clear() { barriers_.clear(); }
  void init(const void* place, uint32_t arrivals);
  // nullptr: none was made there.
  Barrier* find(const void* place);
  // Where the first copy began that no phase has waited for; nullptr: there is none.
  const CallSite* first_site() const;

 private:
  std::vector<Barrier> barriers_;
};

}  // namespace paceline::cuda::emulation
