// launch_tiles() launches the kernel of a choice of tiles.
#pragma once

#include <functional>

#include "kernels/cuda/code/matmul_tiles.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/tile_choice.h"

namespace paceline::cuda {

// Memory for the sums of `segments` segments of `tiles` tiles, of `pieces` each.
using MakeSplitSums = std::function<SplitSums(int64_t tiles, int64_t segments, int64_t pieces)>;

// `params` without numbers of tiles and split sums. kGated: of two matrices, whose first columns
// are the first of panels.
template <bool kGated>
void launch_tiles(CudaDevice& device, const TileParams& params, const TileChoice& choice,
                  const TileDevice& on, const MakeSplitSums& make_split);

}  // namespace paceline::cuda
