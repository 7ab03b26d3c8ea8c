// Index3 numbers a block in its grid.
#pragma once

#include <cstdint>

namespace paceline::cuda {

struct Index3 {
  uint32_t x;
  uint32_t y;
  uint32_t z;
};

}  // namespace paceline::cuda
