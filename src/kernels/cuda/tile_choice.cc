#include "kernels/cuda/tile_choice.h"

#include <algorithm>
#include <span>

#include "base/divide_up.h"
#include "kernels/cuda/code/matmul_tiles.h"

namespace paceline::cuda {
namespace {

struct TileKernel {
  TileSize size;
  int64_t blocks_at_once;
  int64_t shared_bytes;
  bool splits;
  bool takes_registers;
  double rate;  // of a multiprocessor that is full of them, relative
};

template <uint32_t kGroups, uint32_t kRows, bool kGated>
TileKernel tile_kernel(double rate) {
  using Kernel = MatmulTiles<kGroups, kRows, kGated>;
  return {{Kernel::Shape::kColumns, kRows}, Kernel::kBlocksAtOnce,
          sizeof(typename Kernel::Shared),  Kernel::kSplits,
          Kernel::kTakesRegisters,          rate};
}

// The rates are measured on an H200.
const TileKernel kPlainKernels[] = {
    tile_kernel<1, 16, false>(0.22),  tile_kernel<1, 32, false>(0.42),
    tile_kernel<1, 64, false>(0.70),  tile_kernel<2, 64, false>(0.85),
    tile_kernel<2, 128, false>(0.97), tile_kernel<2, 192, false>(1.0),
};
const TileKernel kGatedKernels[] = {
    tile_kernel<1, 16, true>(0.25),  tile_kernel<1, 32, true>(0.45), tile_kernel<2, 64, true>(0.80),
    tile_kernel<2, 128, true>(0.97), tile_kernel<2, 192, true>(1.0),
};

std::span<const TileKernel> kernels_of(const ProductSize& product) {
  if (product.is_gated) return kGatedKernels;
  return kPlainKernels;
}

bool is_possible(const TileKernel& tile, const ProductSize& product, const TileDevice& device) {
  const bool has_rows = tile.size.rows >= 64 || product.rows <= tile.size.rows;
  const bool has_registers = device.can_take_registers || !tile.takes_registers;
  return has_rows && has_registers && tile.shared_bytes <= device.shared_bytes;
}

int64_t num_tiles_of(const TileKernel& tile, const ProductSize& product) {
  return divide_up(product.rows, tile.size.rows) * divide_up(product.columns, tile.size.columns);
}

int64_t num_segments_of(const ProductSize& product) {
  return divide_up(product.inputs, int64_t{kSegmentLength});
}

// The time of the fullest multiprocessor, in elements of the output.
double tiling_cost(const TileKernel& tile, const ProductSize& product, int64_t multiprocessors) {
  const int64_t rounds = divide_up(num_tiles_of(tile, product), multiprocessors);
  return static_cast<double>(rounds * tile.size.rows * tile.size.columns) / tile.rate;
}

}  // namespace

std::optional<TileChoice> choose_tile(const ProductSize& product, const TileDevice& device) {
  const TileKernel* best = nullptr;
  double least = 0.0;
  for (const TileKernel& tile : kernels_of(product)) {
    if (!is_possible(tile, product, device)) continue;
    const double own = tiling_cost(tile, product, device.multiprocessors);
    if (best != nullptr && own >= least) continue;
    best = &tile;
    least = own;
  }
  if (best == nullptr) return {};
  const bool splits = best->splits && num_segments_of(product) > 1 &&
                      num_tiles_of(*best, product) < device.multiprocessors;
  return TileChoice{best->size, best->blocks_at_once, splits};
}

std::vector<TileChoice> possible_tiles(const ProductSize& product, const TileDevice& device) {
  std::vector<TileChoice> choices;
  for (const TileKernel& tile : kernels_of(product)) {
    if (!is_possible(tile, product, device)) continue;
    choices.push_back({tile.size, tile.blocks_at_once, false});
    if (tile.splits && num_segments_of(product) > 1) {
      choices.push_back({tile.size, tile.blocks_at_once, true});
    }
  }
  return choices;
}

}  // namespace paceline::cuda
