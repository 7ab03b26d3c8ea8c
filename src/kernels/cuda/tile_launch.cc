#include "kernels/cuda/tile_launch.h"

#include <algorithm>

#include "base/divide_up.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/product_views.h"

namespace paceline::cuda {
namespace {

template <class Kernel>
void launch_kernel(CudaDevice& device, TileParams params, const TileChoice& choice,
                   const TileDevice& on, const MakeSplitSums& make_split) {
  const int64_t row_tiles = divide_up(params.num_rows, choice.size.rows);
  const int64_t column_tiles =
      divide_up(num_tiles(params.columns[0].first, params.num_columns, kPanelWidth),
                int64_t{Kernel::Shape::kColumns} / kPanelWidth);
  params.num_row_tiles = static_cast<uint32_t>(row_tiles);
  params.num_column_tiles = static_cast<uint32_t>(column_tiles);
  int64_t blocks = row_tiles * column_tiles;
  if (choice.splits_inputs) {
    params.split =
        make_split(blocks, divide_up(int64_t{params.columns[0].weights.k}, kSegmentLength),
                   int64_t{Kernel::Sums::kPieces} * Kernel::kMultiplying);
  } else {
    blocks = std::min(blocks, choice.blocks_at_once * on.multiprocessors);
  }
  launch<Kernel>(device,
                 {.x = static_cast<uint32_t>(blocks), .z = std::max(1u, params.split.num_segments)},
                 params);
}

}  // namespace

template <bool kGated>
void launch_tiles(CudaDevice& device, const TileParams& params, const TileChoice& choice,
                  const TileDevice& on, const MakeSplitSums& make_split) {
  const auto run = [&]<uint32_t kGroups, uint32_t kRows>() {
    launch_kernel<MatmulTiles<kGroups, kRows, kGated>>(device, params, choice, on, make_split);
  };
  if (choice.size.rows == 192) return run.template operator()<2, 192>();
  if (choice.size.rows == 128) return run.template operator()<2, 128>();
  if (choice.size.rows == 64) {
    if constexpr (!kGated) {
      if (choice.size.columns == 64) return run.template operator()<1, 64>();
    }
    return run.template operator()<2, 64>();
  }
  if (choice.size.rows == 32) return run.template operator()<1, 32>();
  run.template operator()<1, 16>();
}

template void launch_tiles<false>(CudaDevice&, const TileParams&, const TileChoice&,
                                  const TileDevice&, const MakeSplitSums&);
template void launch_tiles<true>(CudaDevice&, const TileParams&, const TileChoice&,
                                 const TileDevice&, const MakeSplitSums&);

}  // namespace paceline::cuda
