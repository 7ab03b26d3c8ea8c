#include "kernels/cuda/emulation/pending_copies.h"

#include <cstring>

namespace paceline::cuda::emulation {

void PendingCopies::Copy::land() const {
  if (from == nullptr) {
    std::memset(to, 0, kBytes);
  } else {
    std::memcpy(to, from, kBytes);
  }
}

void PendingCopies::wait(size_t pending) {
  const size_t num_landing = num_groups_ > pending ? num_groups_ - pending : 0;
  size_t i = 0;
  for (; i < copies_.size() && copies_[i].group < num_landing; ++i) {
    if (!copies_[i].has_landed) copies_[i].land();
  }
  copies_.erase(copies_.begin(), copies_.begin() + static_cast<ptrdiff_t>(i));
}

}  // namespace paceline::cuda::emulation
