// BlockOrder is the order in which a launch's blocks run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "kernels/cuda/code/index3.h"
#include "kernels/cuda/device.h"

namespace paceline::cuda::emulation {

class BlockOrder {
 public:
  BlockOrder(Grid grid, ThreadOrder order, uint64_t seed)
      : grid_(grid), count_(int64_t{grid.x} * grid.y * grid.z), order_(order) {
    if (order != ThreadOrder::shuffled) return;
    shuffled_.resize(static_cast<size_t>(count_));
    for (size_t i = 0; i < shuffled_.size(); ++i) {
      const auto j = static_cast<size_t>(uniform_draw(seed, i) * static_cast<double>(i + 1));
      shuffled_[i] = shuffled_[j];
      shuffled_[j] = static_cast<int64_t>(i);
    }
  }

  int64_t count() const { return count_; }
  Index3 block_at(int64_t place) const {
    const int64_t index = order_ == ThreadOrder::ascending ? place
                          : order_ == ThreadOrder::descending
                              ? count_ - 1 - place
                              : shuffled_[static_cast<size_t>(place)];
    return {.x = static_cast<uint32_t>(index % grid_.x),
            .y = static_cast<uint32_t>(index / grid_.x % grid_.y),
            .z = static_cast<uint32_t>(index / grid_.x / grid_.y)};
  }

 private:
  Grid grid_;
  int64_t count_;
  ThreadOrder order_;
  std::vector<int64_t> shuffled_;
};

}  // namespace paceline::cuda::emulation
