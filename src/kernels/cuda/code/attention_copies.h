// What a block of attention_tiles.h computes, and the copies of a chunk's keys and values to its
// shared memory.
#pragma once

#include "kernels/cuda/code/attention_chunk.h"
#include "kernels/cuda/code/attention_fragments.h"
#include "kernels/cuda/code/panel_products.h"

namespace paceline::cuda {

constexpr int32_t kTileRows = 16;  // of a warp
constexpr auto kTiledKeys = static_cast<int32_t>(kChunkKeys);
constexpr auto kHalfKeys = static_cast<int32_t>(kTileWidth);  // of a chunk: those of a tile
static_assert(kTiledKeys == 2 * kHalfKeys);
constexpr int64_t kMostTiledHeadDim = 256;

// Values of more dimensions than two blocks of 64 are of two blocks of threads, along y of the
// grid, which both compute the weights: their sums would not fit registers.
template <int kBlocks>
inline constexpr int kValueParts = kBlocks > 2 ? 2 : 1;
template <int kBlocks>
inline constexpr int kValueBlocks = kBlocks > 2 ? 2 : kBlocks;
constexpr int64_t kMostDimsOfBlock = 2 * int64_t{kTileWidth};

// Where a packed row's query, chunks and results stand.
struct RowPlace {
  int32_t index;  // in `rows`
  int32_t row;
  int32_t head;
};

// Halves of a chunk's keys that are in shared memory at once: 99 KiB don't hold two of longer heads
// beside their values.
template <int kBlocks>
inline constexpr int kKeySlots = kBlocks > 2 ? 1 : 2;

// kBlocks: 64 dimensions each.
template <class Stored, int kBlocks, int kWarps>
struct AttentionTileShared {
  StoredTile<Stored> keys[kKeySlots<kBlocks>][kBlocks];  // rows are dimensions
  StoredTile<Stored> values[2][kValueBlocks<kBlocks>];   // of halves; rows are positions
  Words4 queries[kWarps][kBlocks * 4][kWarpLanes];
  RowPlace places[kWarps][kTileRows];  // which registers have no room for
  Floats4 key_scales[2][kTileWidth / 4];
  Floats4 value_scales[2][kTileWidth / 4];
};

// What a block computes: packed rows of one kv head, and the positions that they see.
struct TiledRows {
  int32_t first_row;
  int32_t skipped;
  int32_t count;
  int32_t begin;  // visible position
  int32_t end;    // behind the last
  int32_t kv_head;
  int32_t table;  // where the block table begins

  PL_DEVICE int32_t row(const AttentionKernelParams& p, int32_t packed) const {
    return first_row + (skipped + packed) / static_cast<int32_t>(p.group);
  }
  PL_DEVICE int32_t head(const AttentionKernelParams& p, int32_t packed) const {
    const auto group = static_cast<int32_t>(p.group);
    return kv_head * group + (skipped + packed) % group;
  }
};

template <int kWarps>
PL_DEVICE TiledRows tiled_rows(const AttentionKernelParams& p, uint32_t kv_head) {
  constexpr int32_t kRows = kWarps * kTileRows;
  TiledRows rows;
  if (p.tiles != nullptr) {
    const AttentionTile& tile = p.tiles[block_index().x];
    rows = {static_cast<int32_t>(tile.first_row), tile.skipped, tile.count, 0, 0, 0, 0};
  } else {
    const auto group = static_cast<int32_t>(p.group), index = static_cast<int32_t>(block_index().x);
    const int32_t of_row = (group + kRows - 1) / kRows;
    rows = {index / of_row, index % of_row * kRows, 0, 0, 0, 0, 0};
    const int32_t left = group - rows.skipped;
    rows.count = left < kRows ? left : kRows;
  }
  const AttentionRow& first = p.rows[rows.first_row];
  rows.begin = static_cast<int32_t>(first.first);
  rows.end = static_cast<int32_t>(p.rows[rows.row(p, rows.count - 1)].end);
  rows.kv_head = static_cast<int32_t>(kv_head);
  rows.table = static_cast<int32_t>(first.table);
  return rows;
}

// Copies of half a chunk's keys and of its values to shared memory. Positions that no row sees are
// zero, or for keys whatever their block holds.
template <class Stored, int kBlocks, int kWarps>
struct ChunkCopies {
  using Shared = AttentionTileShared<Stored, kBlocks, kWarps>;
  using Chunks = StoredTile<Stored>;
  static constexpr uint32_t kThreads = kWarps * kWarpLanes;

  const AttentionKernelParams& p;
  const TiledRows& rows;
  Shared& shared;

  PL_DEVICE bool is_visible(int32_t position) const {
    return position >= rows.begin && position < rows.end;
  }
  PL_DEVICE int32_t place_in_block(int32_t position) const {
    return position & ((1 << p.block_bits) - 1);
  }
  // Where the kv head begins in the lane's block; every lane of the warp calls it.
  PL_DEVICE uint64_t head_place(int32_t blocks, uint32_t position, int64_t block_stride,
                                int64_t head_stride) const {
    const auto block = static_cast<uint32_t>(shuffle(blocks, position / 2));
    return uint64_t{block} * static_cast<uint32_t>(block_stride) +
           static_cast<uint64_t>(rows.kv_head * head_stride);
  }

  // The block of a lane: that of position first_position + 2 lane, or of the nearest visible one.
  PL_DEVICE int32_t load_blocks(int32_t first_position) const {
    const int32_t own = first_position + static_cast<int32_t>(2 * lane_index());
    const int32_t before_end = own < rows.end ? own : rows.end - 1;
    const int32_t nearest = before_end > rows.begin ? before_end : rows.begin;
    return p.tables[rows.table + (nearest >> p.block_bits)];
  }

  // Threads take rows of chunks; 16 rows at a time have a spread that is known here.
  static constexpr uint32_t kRowsOfThreads = kThreads / Chunks::kChunks;
  static constexpr uint32_t kStep = kRowsOfThreads > 16 ? kRowsOfThreads : 16;
  PL_DEVICE static uint32_t own_row() { return thread_index() / Chunks::kChunks; }
  PL_DEVICE static uint32_t own_chunk() { return thread_index() % Chunks::kChunks; }

  // Whether any row may see a key of the half.
  PL_DEVICE bool sees_half(int32_t first_position) const {
    return first_position < rows.end && first_position + kHalfKeys > rows.begin;
  }

  // A thread takes the same positions of several dimensions. Keys that no row sees aren't copied.
  PL_DEVICE void begin_keys(int32_t first_position, uint32_t half, int32_t blocks) const {
    if (sees_half(first_position)) copy_keys(first_position, half, blocks);
    commit_copies();
  }

  PL_DEVICE void copy_keys(int32_t first_position, uint32_t half, int32_t blocks) const {
    constexpr auto kPerChunk = static_cast<int32_t>(Chunks::kPerChunk);
    const uint32_t own = own_chunk() * Chunks::kPerChunk;
    const int32_t position = first_position + static_cast<int32_t>(own);
    const bool is_present = position < rows.end && position + kPerChunk > rows.begin;
    const auto block_size = uint32_t{1} << p.block_bits;
    const Stored* from = static_cast<const Stored*>(p.kv.keys) +
                         head_place(blocks, own, p.kv.key_block_stride, p.kv.key_head_stride) +
                         place_in_block(position) + own_row() * block_size;
    const auto dims = static_cast<uint32_t>(p.kv.head_dim);
    PL_ROLLED
    for (uint32_t first = 0; first < dims; first += kStep) {
      PL_UNROLL
      for (uint32_t i = 0; i < kStep; i += kRowsOfThreads) {
        const uint32_t d = first + i + own_row(), spread = (own_row() / 4 + i / 4) % 4;
        if (kStep > 16 && d >= dims) continue;
        copy_async(shared.keys[half % kKeySlots<kBlocks>][d / kTileWidth].chunk(
                       d % kTileWidth, own_chunk(), spread),
                   from, is_present);
        from += kRowsOfThreads * block_size;
      }
    }
    if constexpr (kHasScales<Stored>) {
      begin_scales(p.kv.key_scales, first_position, blocks, shared.key_scales[half]);
    }
  }

  // A thread takes the same dimensions of several positions. `blocks`: of both halves.
  PL_DEVICE void begin_values(int32_t first_position, const int32_t (&blocks)[2]) const {
    PL_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      copy_values(first_position + static_cast<int32_t>(half) * kHalfKeys, half, blocks[half]);
    }
    commit_copies();
  }

  PL_DEVICE void copy_values(int32_t first_position, uint32_t half, int32_t blocks) const {
    constexpr uint32_t kChunks = Chunks::kChunks, kOfPart = kValueBlocks<kBlocks> * kChunks;
    const uint32_t first_chunk = block_index().y % kValueParts<kBlocks> * kOfPart;
    const auto dims = static_cast<uint32_t>(p.kv.head_dim);
    const uint32_t chunks = dims / Chunks::kPerChunk - first_chunk;
    const Stored* const values =
        static_cast<const Stored*>(p.kv.values) + (first_chunk + own_chunk()) * Chunks::kPerChunk;
    PL_ROLLED
    for (uint32_t first = 0; first < kTileWidth; first += kStep) {
      PL_UNROLL
      for (uint32_t i = 0; i < kStep; i += kRowsOfThreads) {
        const uint32_t row = first + i + own_row(), spread = row / (kHasScales<Stored> ? 4 : 2) % 4;
        const int32_t position = first_position + static_cast<int32_t>(row);
        const Stored* const from =
            values + head_place(blocks, row, p.kv.value_block_stride, p.kv.value_head_stride) +
            static_cast<uint32_t>(place_in_block(position)) * dims;
        PL_UNROLL
        for (uint32_t block = 0; block < kValueBlocks<kBlocks>; ++block) {
          if (block * kChunks + own_chunk() >= chunks) continue;
          copy_async(shared.values[half][block].chunk(row, own_chunk(), spread),
                     from + block * kTileWidth, is_visible(position));
        }
      }
    }
    if constexpr (kHasScales<Stored>) {
      begin_scales(p.kv.value_scales, first_position, blocks, shared.value_scales[half]);
    }
  }

  PL_DEVICE void begin_scales(const float* scales, int32_t first_position, int32_t blocks,
                              Floats4 (&to)[kTileWidth / 4]) const {
    const uint32_t i = thread_index() % (kTileWidth / 4);
    const int32_t position = first_position + static_cast<int32_t>(4 * i);
    const float* const from =
        scales + head_place(blocks, 4 * i, p.kv.scale_block_stride, p.kv.scale_head_stride) +
        place_in_block(position);
    if (thread_index() != i) return;
    copy_async(&to[i], from, position < rows.end && position + 4 > rows.begin);
  }
};

}  // namespace paceline::cuda
