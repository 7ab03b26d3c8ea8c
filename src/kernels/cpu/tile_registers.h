// The tile registers of AMX (Intel SDM, volume 1, chapter 18): eight of up to 16 rows of 64 bytes.
#pragma once

#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileColumns = 16;
constexpr int64_t kStepDepth = 32;  // values of K, in bfloat16, in a register
constexpr int64_t kRowBytes = 64;
constexpr int64_t kTileElements = kTileRows * kTileColumns;  // of sums

// GCC 12 doesn't know that loading a tile reads memory: earlier stores must be finished first.
PL_INLINE void finish_stores() { __asm__ volatile("" ::: "memory"); }

// After some 2,000 cycles without a 512-bit float operation, storing a tile takes 700 cycles more
// (measured on a Xeon of the Sapphire Rapids class, docs/performance.md). Loops of products that
// store rarely add zeros every kWakeSteps steps of four products.
constexpr int64_t kWakeSteps = 8;
PL_INLINE void keep_stores_awake() {
  Vec zeros = {};
  __asm__ volatile("vaddps %0, %0, %0" : "+v"(zeros));
}

// The shape of every tile register, until the next use() or _tile_release().
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void set(int tile, int64_t num_rows, int64_t bytes = kRowBytes) {
    row_bytes[tile] = num_rows == 0 ? 0 : static_cast<uint16_t>(bytes);
    rows[tile] = static_cast<uint8_t>(num_rows);
  }
  void use() const {
    finish_stores();
    _tile_loadconfig(this);
  }
};

// Instructions with the register as a template parameter; GCC's intrinsics take literals alone.
template <int kTile>
PL_INLINE void zero_tile() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
template <int kTile>
PL_INLINE void load_tile(const char* from, int64_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile));
}
template <int kTile>
PL_INLINE void store_tile(void* to, int64_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                   :
                   : "r"(to), "r"(stride), "i"(kTile)
                   : "memory");
}
// Sums of products of bytes, the inputs' signed, the weights' signed or not.
template <bool kUnsignedWeights, int kSum, int kInput, int kWeight>
PL_INLINE void multiply_tiles() {
  if constexpr (kUnsignedWeights) {
    __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0"
                     :
                     : "i"(kSum), "i"(kInput), "i"(kWeight));
  } else {
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0"
                     :
                     : "i"(kSum), "i"(kInput), "i"(kWeight));
  }
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
