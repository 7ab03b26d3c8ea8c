// PendingCopies are a thread's asynchronous copies that have not landed (cp.async of the PTX ISA).
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/cuda/emulation/call_site.h"

namespace paceline::cuda::emulation {

class PendingCopies {
 public:
  static constexpr size_t kBytes = 16;

  // Zeros where `from` is nullptr. `lands_now`: before its wait, which it still needs.
  void begin(void* to, const void* from, CallSite site, bool lands_now) {
    copies_.push_back({to, from, num_groups_, site, lands_now});
    if (lands_now) copies_.back().land();
  }
  void commit() { ++num_groups_; }
  // Lands all groups but the last `pending`.
  void wait(size_t pending);
  void clear() {
    copies_.clear();
    num_groups_ = 0;
  }
  // Where the first one that has not landed began; nullptr: all have.
  const CallSite* first_site() const { return copies_.empty() ? nullptr : &copies_[0].site; }

 private:
  struct Copy {
    void* to;
    const void* from;
    size_t group;
    CallSite site;
    bool has_landed;

    void land() const;
  };
  std::vector<Copy> copies_;  // in the order of groups
  size_t num_groups_ = 0;     // committed
};

}  // namespace paceline::cuda::emulation
