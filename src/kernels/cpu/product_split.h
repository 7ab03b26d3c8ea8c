// How a product is cut into pieces for the threads: panels of columns, and blocks of rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/divide_up.h"

namespace paceline {

constexpr int64_t kInputLine = 64;  // bytes

// Bytes from one row of inputs to the next. One line more than the row: rows a power of two apart
// would share their cache sets.
inline int64_t input_stride_of(int64_t row_bytes) {
  return divide_up(row_bytes, kInputLine) * kInputLine + kInputLine;
}

// How many pieces a thread takes at once: all of products that aren't worth waking another for.
inline int64_t grain_of(int64_t num_pieces, int64_t multiply_adds) {
  constexpr int64_t kSmallProduct = 65536;
  return multiply_adds < kSmallProduct ? num_pieces : 1;
}

// A grid of pieces: each multiplies some rows by some panels.
struct ProductSplit {
  int64_t num_rows = 0;
  int64_t num_panels = 0;
  int64_t block_rows = 0;
  int64_t piece_panels = 0;

  // Splits by rows only where there are too few panels.
  ProductSplit(int64_t rows, int64_t panels, int64_t num_threads)
      : num_rows(rows), num_panels(panels) {
    // Fewer rows per block would read the weights too often. A product of one row streams up to
    // kPanelsAtOnce panels.
    constexpr int64_t kMinBlockRows = 24, kPiecesPerThread = 6, kPanelsAtOnce = 8;
    const int64_t wanted = kPiecesPerThread * num_threads;
    piece_panels = std::max<int64_t>(1, panels / wanted);
    if (piece_panels > kPanelsAtOnce / 2) {
      const int64_t unit = piece_panels < 2 * kPanelsAtOnce ? kPanelsAtOnce / 2 : kPanelsAtOnce;
      piece_panels = piece_panels / unit * unit;
    }
    const int64_t pieces = divide_up(panels, piece_panels);
    const int64_t most_blocks = std::max<int64_t>(1, rows / kMinBlockRows);
    const int64_t blocks = std::clamp<int64_t>(wanted / 2 / pieces, 1, most_blocks);
    block_rows = divide_up(rows, blocks);
  }

  // For kernels that multiply blocks of `tile_rows` rows in tile registers (0: there are none).
  // Writing sums beyond the second-level cache takes longer than reading weights from it. So where
  // this cache holds one segment of all panels, or of half of them, pieces are some rows of all
  // these panels. A panel's segment has `panel_bytes`.
  static ProductSplit of_tiles(int64_t rows, int64_t panels, int64_t num_threads, int64_t tile_rows,
                               int64_t panel_bytes) {
    constexpr int64_t kCachedBytes = int64_t{1} << 20, kMostGroups = 2, kPiecesPerThread = 4;
    ProductSplit split(rows, panels, num_threads);
    const int64_t groups = divide_up(panels * panel_bytes, kCachedBytes);
    if (rows < 2 * tile_rows * num_threads || tile_rows == 0 || groups > kMostGroups) return split;
    split.piece_panels = divide_up(panels, groups);
    const int64_t blocks = divide_up(kPiecesPerThread * num_threads, groups);
    split.block_rows = divide_up(divide_up(rows, blocks), tile_rows) * tile_rows;
    return split;
  }

  struct Piece {
    int64_t first_row;
    int64_t num_rows;
    int64_t first_panel;
    int64_t last_panel;
  };
  int64_t num_pieces() const {
    return divide_up(num_rows, block_rows) * divide_up(num_panels, piece_panels);
  }
  Piece piece(int64_t index) const {
    const int64_t pieces = divide_up(num_panels, piece_panels);
    const int64_t first_row = index / pieces * block_rows;
    const int64_t first_panel = index % pieces * piece_panels;
    return {first_row, std::min(block_rows, num_rows - first_row), first_panel,
            std::min(first_panel + piece_panels, num_panels)};
  }
  int64_t grain(int64_t multiply_adds) const { return grain_of(num_pieces(), multiply_adds); }
};

}  // namespace paceline
