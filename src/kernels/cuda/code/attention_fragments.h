// Operands of attention's matrix instructions: stored rows of 64 elements, which an instruction
// walks down, so that its pairs are elements of neighbouring rows (keys are stored by dimension,
// values by position). A tile has 64 keys and 64 dimensions: half of a chunk's keys.
#pragma once

#include "kernels/cuda/code/element_types.h"

namespace paceline::cuda {

constexpr uint32_t kTileWidth = 64;  // elements of a row, and rows

template <int kCount>
struct alignas(4 * kCount) Words {
  uint32_t words[kCount];
};

// Rows in chunks of 16 bytes. `spread` is 0 to 3, a different number for the four rows (with
// load_transposed(), pairs of rows) that lanes read at once, which then stand in different banks
// (8-bit codes: in two).
template <class Stored>
struct StoredTile {
  static constexpr uint32_t kPerChunk = 16 / sizeof(Stored);
  static constexpr uint32_t kChunks = kTileWidth / kPerChunk;  // of a row
  Words4 rows[kTileWidth][kChunks];

  PL_DEVICE Words4* chunk(uint32_t row, uint32_t index, uint32_t spread) {
    return &rows[row][index ^ (kChunks == 8 ? 2 * spread + row % 2 : spread)];
  }
  // kCount elements of a row, which stand in one chunk.
  template <int kCount>
  PL_DEVICE auto load(uint32_t row, uint32_t first, uint32_t spread) {
    constexpr int kWords = kCount * static_cast<int>(sizeof(Stored)) / 4;
    const Words4* const from = chunk(row, first / kPerChunk, spread);
    return load_as<Words<kWords>>(&from->words[first % kPerChunk * sizeof(Stored) / 4]);
  }
};

// Element i of two rows as a pair of bfloat16. Codes are small integers, which bfloat16 holds.
template <class Stored, int kCount>
PL_DEVICE uint32_t pair_of_rows(const Words<kCount>& first, const Words<kCount>& second, int i) {
  if constexpr (kHasScales<Stored>) {
    const auto code = [i](uint32_t word) {
      return static_cast<float>(static_cast<int8_t>(word >> 8 * (i % 4) & 0xFFu));
    };
    return pack_bf16(code(first.words[i / 4]), code(second.words[i / 4]));
  } else {
    const uint32_t low = first.words[i / 2], high = second.words[i / 2];
    return i % 2 == 0 ? (low & 0xFFFFu) | high << 16 : low >> 16 | (high & 0xFFFF0000u);
  }
}

// The bits that an instruction takes of rows first and first + 1, and of the two after them.
struct KeptBits {
  uint32_t of_pairs[2] = {~0u, ~0u};
};

// d[j] += a times rows first to first + 3 of the four lanes t: column i of instruction j is element
// 8 i + begin + j. Bits of pairs that aren't kept are zero.
template <class Stored, int kCount>
PL_DEVICE void multiply_rows(StoredTile<Stored>& tile, uint32_t first, uint32_t spread,
                             uint32_t begin, const uint32_t (&a)[4], float (&d)[kCount][4],
                             const KeptBits& kept = {}) {
  const uint32_t element = 8 * (lane_index() / 4) + begin;
  const auto row0 = tile.template load<kCount>(first, element, spread);
  const auto row1 = tile.template load<kCount>(first + 1, element, spread);
  const auto row2 = tile.template load<kCount>(first + 2, element, spread);
  const auto row3 = tile.template load<kCount>(first + 3, element, spread);
  PL_UNROLL
  for (int j = 0; j < kCount; ++j) {
    const uint32_t b[2] = {pair_of_rows<Stored>(row0, row1, j) & kept.of_pairs[0],
                           pair_of_rows<Stored>(row2, row3, j) & kept.of_pairs[1]};
    mma_bf16(d[j], a, b);
  }
}

// The rows of a lane, and those whose pairs it gets, in an instruction's 16.
struct LoadedRow {
  uint32_t row;     // among the 16
  uint32_t spread;  // of the tile's chunk
};
// Lane t gets rows 2 t and 2 t + 1, and 8 + 2 t and the next: positions, as the weights stand.
PL_DEVICE LoadedRow loaded_position() {
  const uint32_t row = lane_index() % 16;
  return {row, row / 2 % 4};
}
// Lane t gets rows 4 t to 4 t + 3: dimensions, as queries stand.
PL_DEVICE LoadedRow loaded_dimension() {
  const uint32_t lane = lane_index(), quarter = lane % 8 / 2;
  return {4 * quarter + lane / 8 % 2 * 2 + lane % 2, quarter};
}

// The same of 16 rows from `first` on by load_transposed(): column i of instruction j is element
// 8 (begin + j) + i.
template <int kCount>
PL_DEVICE void multiply_loaded_rows(StoredTile<Bf16>& tile, const LoadedRow& own, uint32_t first,
                                    uint32_t begin, const uint32_t (&a)[4], float (&d)[kCount][4],
                                    const KeptBits& kept = {}) {
  PL_UNROLL
  for (uint32_t j = 0; j < kCount; j += 2) {
    // Matrices: the first eight rows, the others, and both for the next instruction.
    uint32_t b[4];
    load_transposed(b, tile.chunk(first + own.row, begin + j + lane_index() / 16, own.spread));
    PL_UNROLL
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t kept_b[2] = {b[2 * i] & kept.of_pairs[0], b[2 * i + 1] & kept.of_pairs[1]};
      mma_bf16(d[j + i], a, kept_b);
    }
  }
}

// Where a key of a lane stands in each 16: 2 t, 2 t + 1, 8 + 2 t, 9 + 2 t, or with codes, whose
// columns no instruction loads, 4 t to 4 t + 3.
template <class Stored>
struct LaneKeys {
  static constexpr int32_t kOfLane = kHasScales<Stored> ? 4 : 2;  // times t

  // Key i, of four in each 16.
  PL_DEVICE static constexpr int32_t offset(int i) {
    return i / 4 * 16 + (kHasScales<Stored> || i % 4 < 2 ? i % 4 : i % 4 + 6);
  }
};

// d += a times 16 dimensions of 64 keys, those of step `step` of the tile's 64: queries stand as
// loaded_dimension() says. A lane's columns are its LaneKeys: column i of instruction j is key
// 8 j + i, or of codes key 16 (j / 2) + 2 i + j % 2.
PL_DEVICE void multiply_keys_of_step(StoredTile<Bf16>& tile, uint32_t step, const uint32_t (&a)[4],
                                     float (&d)[8][4]) {
  multiply_loaded_rows(tile, loaded_dimension(), 16 * step, 0, a, d);
}
PL_DEVICE void multiply_keys_of_step(StoredTile<int8_t>& tile, uint32_t step,
                                     const uint32_t (&a)[4], float (&d)[8][4]) {
  const uint32_t t = lane_index() % 4, first = 16 * step + 4 * t, g = lane_index() / 4;
  PL_UNROLL
  for (uint32_t keys = 0; keys < 4; ++keys) {
    uint32_t pairs[4];  // of codes
    PL_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      const auto* const codes = reinterpret_cast<const char*>(tile.chunk(first + i, keys, t));
      pairs[i] = load_as<uint16_t>(codes + 2 * g);
    }
    PL_UNROLL
    for (uint32_t j = 0; j < 2; ++j) {
      const auto code = [&pairs, j](uint32_t i) {
        return static_cast<float>(static_cast<int8_t>(pairs[i] >> 8 * j & 0xFFu));
      };
      const uint32_t b[2] = {pack_bf16(code(0), code(1)), pack_bf16(code(2), code(3))};
      mma_bf16(d[2 * keys + j], a, b);
    }
  }
}

// d += a times keys 16 step to 16 step + 15 of 64 dimensions of the values, by instructions begin
// to begin + 3 of eight.
PL_DEVICE void multiply_values(StoredTile<Bf16>& tile, uint32_t step, uint32_t begin,
                               const uint32_t (&a)[4], float (&d)[4][4]) {
  multiply_loaded_rows(tile, loaded_position(), 16 * step, begin, a, d);
}
PL_DEVICE void multiply_values(StoredTile<int8_t>& tile, uint32_t step, uint32_t begin,
                               const uint32_t (&a)[4], float (&d)[4][4]) {
  const uint32_t t = lane_index() % 4;
  multiply_rows(tile, 16 * step + 4 * t, t, begin, a, d);
}

// Two neighbouring columns of a row that a lane has of them, of four times eight: row g, or g + 8.
struct ColumnPair {
  uint32_t first;  // dimension of the 64
  float of[2];
};
template <class Stored>
PL_DEVICE ColumnPair column_pair(const float (&d)[8][4], int row, uint32_t index) {
  const uint32_t t = lane_index() % 4;
  if constexpr (kHasScales<Stored>) {
    const uint32_t i = 2 * index % 8;
    const int column = 2 * row + static_cast<int>(index / 4);
    return {16 * t + 2 * index, {d[i][column], d[i + 1][column]}};
  } else {
    return {8 * index + 2 * t, {d[index][2 * row], d[index][2 * row + 1]}};
  }
}

}  // namespace paceline::cuda
