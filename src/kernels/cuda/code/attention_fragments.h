// Operands of attention's matrix instructions: stored rows of 64 elements, which an instruction
// walks down, so that its pairs are elements of neighbouring rows (keys are stored by dimension,
// values by position).
#pragma once

#include "kernels/cuda/code/element_types.h"

namespace paceline::cuda {

constexpr uint32_t kTileWidth = 64;  // elements of a row, and rows: a chunk's keys, or dimensions

template <int kCount>
struct alignas(4 * kCount) Words {
  uint32_t words[kCount];
};

// Rows in chunks of 16 bytes. `spread` is 0 to 3, a different number for the four rows that lanes
// read at once, which then stand in different banks (8-bit codes: in two), as do the pairs of rows
// that load_transposed() reads.
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

// The same by load_transposed(): column i of instruction j is element 8 (begin + j) + i.
template <int kCount>
PL_DEVICE void multiply_loaded_rows(StoredTile<Bf16>& tile, uint32_t first, uint32_t begin,
                                    const uint32_t (&a)[4], float (&d)[kCount][4],
                                    const KeptBits& kept = {}) {
  // Matrices: the pairs of rows first and first + 1, those of the two after them, and both of the
  // next instruction.
  const uint32_t lane = lane_index(), quarter = lane % 8 / 2;
  const uint32_t row = 16 * quarter + first + lane / 8 % 2 * 2 + lane % 2;
  PL_UNROLL
  for (uint32_t j = 0; j < kCount; j += 2) {
    uint32_t b[4];
    load_transposed(b, tile.chunk(row, begin + j + lane / 16, quarter));
    PL_UNROLL
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t kept_b[2] = {b[2 * i] & kept.of_pairs[0], b[2 * i + 1] & kept.of_pairs[1]};
      mma_bf16(d[j + i], a, kept_b);
    }
  }
}

// Step `step` of a chunk's products with 64 dimensions of the values, by instructions begin to
// begin + 3 of eight: keys 4 step to 4 step + 3 of each 16.
PL_DEVICE void multiply_values(StoredTile<Bf16>& tile, uint32_t step, uint32_t begin,
                               const uint32_t (&a)[4], float (&d)[4][4]) {
  multiply_loaded_rows(tile, 4 * step, begin, a, d);
}
PL_DEVICE void multiply_values(StoredTile<int8_t>& tile, uint32_t step, uint32_t begin,
                               const uint32_t (&a)[4], float (&d)[4][4]) {
  const uint32_t t = lane_index() % 4;
  multiply_rows(tile, 16 * t + 4 * step, t, begin, a, d);
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
