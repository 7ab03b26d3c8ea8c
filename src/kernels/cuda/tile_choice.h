// choose_tile() says by which tiles a product of many rows is computed; the bits don't depend on
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace paceline::cuda {

struct TileSize {
  int64_t columns = 64;  // of each matrix
  int64_t rows = 64;

  bool operator==(const TileSize&) const = default;
};

struct TileChoice {
  TileSize size;
  int64_t blocks_at_once = 1;  // on a multiprocessor
  bool splits_inputs = false;  // a block for each segment of K

  bool operator==(const TileChoice&) const = default;
};

struct ProductSize {
  int64_t rows = 0;
  int64_t columns = 0;  // of each matrix
  int64_t inputs = 0;
  bool is_gated = false;  // two matrices and the activation
};

struct TileDevice {
  int64_t multiprocessors = 1;
  int64_t shared_bytes = 0;         // of a block, at most
  bool can_take_registers = false;  // Hopper
};

// None where no kernel fits the device, which may be if it is gated.
std::optional<TileChoice> choose_tile(const ProductSize& product, const TileDevice& device);
// All that could be chosen.
std::vector<TileChoice> possible_tiles(const ProductSize& product, const TileDevice& device);

}  // namespace paceline::cuda
