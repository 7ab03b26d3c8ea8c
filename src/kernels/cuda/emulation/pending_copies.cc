#include "kernels/cuda/emulation/pending_copies.h"

#include <cstring>

namespace paceline::cuda::emulation {

void PendingCopies::wait(size_t pending) {
  const size_t num_landing = num_groups_ > pending ? num_groups_ - pending : 0;
  size_t i = 0;
  for (; i < copies_.size() && copies_[i].group < num_landing; ++i) {
    if (copies_[i].from == nullptr) {
      std::memset(copies_[i].to, 0, kBytes);
    } else {
      std::memcpy(copies_[i].to, copies_[i].from, kBytes);
    }
  }
  copies_.erase(copies_.begin(), copies_.begin() + static_cast<ptrdiff_t>(i));
}

}  // namespace paceline::cuda::emulation
