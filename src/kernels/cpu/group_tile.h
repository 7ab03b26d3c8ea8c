// A tile of sums of a quantised product: some rows times some vectors of columns over one segment.
#pragma once

#include "kernels/cpu/group_layout.h"
#include "kernels/cpu/int_products.h"
#include "kernels/cpu/panel_codes.h"
#include "kernels/packed_layout.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int kPanelVectors = static_cast<int>(kPanelWidth) / kLanes;
// A sum takes two registers, one of integers inside a group and one of floats; the rest hold
// weights, scales and inputs.
constexpr int kGroupSums = kAccumulators / 2 - (kAccumulators < 24 ? 2 : 0);
constexpr int kMaxGroupVectors = kGroupSums >= 8 ? 8 : 4;
constexpr int kMinGroupVectors = 2;
constexpr int kMaxGroupRows = kGroupSums / kMinGroupVectors;
constexpr int kMaxStreamingRows = 4;
// How far ahead few rows ask for codes: 128 elements of 32 columns.
constexpr int64_t group_lead(int bits) { return bits * 512; }
constexpr int64_t kLineLanes = 16;  // of four codes each
constexpr int64_t kLineBytes = 64;
// The shortest group: so many elements are taken without a branch (of codes with a plane of single
// bits twice as many).
constexpr int kChunkElements = 16;

struct GroupTile {
  const char* codes = nullptr;    // of the first row's inputs at the segment's start
  const char* scales = nullptr;   // of the first row and the segment's first group
  int64_t starts = 0;             // bytes from a scale to the start of its integer sums
  int64_t sums = 0;               // and to the sum of its inputs
  int64_t input_stride = 0;       // bytes from row to row, of all of them
  const char* records = nullptr;  // the segment's first in the first vector's panel
  RecordLayout layout;
  const char* factors = nullptr;  // of the tile's columns
  int64_t panel_bytes = 0;
  int64_t first_lane = 0;  // of the tile's first column in its panel
  int64_t group_size = 0;
  int64_t num_groups = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t num_columns = 0;      // of the matrix, from the tile's first on
  const float* bias = nullptr;  // at the tile's first column, in the last segment; or nullptr
  bool is_first_segment = false;
  // From this record on, a few rows ask for what lies group_lead() and so much more ahead:
  // the panels after those of the tile.
  const char* leap_from = nullptr;
  int64_t leap = 0;
  // Weights that come next: so many bytes of [ahead, ahead_end) are asked for in each group.
  const char* ahead = nullptr;
  const char* ahead_end = nullptr;
  int64_t ahead_step = 0;
};

template <class T>
PL_INLINE T load_one(const char* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

// Where vector v of the tile's columns stands: in which panel, and how many lanes in.
PL_INLINE int64_t panel_of(int v) { return v / kPanelVectors; }
PL_INLINE int64_t lane_of(int v) { return v % kPanelVectors * int64_t{kLanes}; }

template <int kRows, int kVectors>
PL_INLINE void store_group_tile(const GroupTile& tile, const Vec (&sums)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = v * int64_t{kLanes};
    const int64_t count = min_of(tile.num_columns - column, kLanes);
    if (count <= 0) return;
    const Vec factors = load(reinterpret_cast<const float*>(
        tile.factors + panel_of(v) * tile.panel_bytes + lane_of(v) * 4));
    const Vec bias = tile.bias == nullptr ? Vec{} : load_upto(tile.bias + column, count);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      float* const out = tile.out + r * tile.out_stride + column;
      Vec value = sums[r][v] * factors;
      if (!tile.is_first_segment) value = load_upto(out, count) + value;
      if (tile.bias != nullptr) value = value + bias;
      store_upto(out, value, count);
    }
  }
}

// sums[r][v] += scale * float(sum of integer products), group after group; groups with offsets add
// offset * sum of inputs. Forms of scales are told apart as it runs: a kernel for each took twice
// as long to compile and was no faster.
template <int kBits, int kRows, int kVectors>
void multiply_group_tile(const GroupTile& tile) {
  using Codes = PanelCodes<kBits>;
  constexpr int kFours = kChunkElements / 4;
  // Weights of few rows come from memory; those of many stay in the cache, and the next rows'
  // inputs are asked for.
  constexpr bool kIsStreaming = kRows <= kMaxStreamingRows;
  const char* inputs = tile.codes;
  const char* scales = tile.scales;
  const RecordLayout layout = tile.layout;
  GroupCursor place(layout, tile.records);
  const char* ahead = tile.ahead;
  const int64_t stride = tile.input_stride;
  const int64_t low_bytes = tile.group_size * kPanelWidth * Codes::kPlanes.low / 8;
  Vec sums[kRows][kVectors] = {};
  for (int64_t g = 0; g < tile.num_groups; ++g) {
    Ints acc[kRows][kVectors];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const Ints start = (Ints)splat_bits(load_one<uint32_t>(scales + r * stride + tile.starts));
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[r][v] = start;
    }
    const char* low = place.codes + tile.first_lane * 4;
    const char* high = low + low_bytes;
    const int64_t lead = group_lead(kBits) + (place.codes >= tile.leap_from ? tile.leap : 0);
    for (int64_t first = 0; first < tile.group_size; first += Codes::kElements) {
      const auto add_chunk = [&]<int kChunk>() __attribute__((always_inline)) {
        typename IntProduct::Sum<kBits> parts[kRows][kVectors];
#pragma GCC unroll 6
        for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) parts[r][v] = IntProduct::begin<kBits>(acc[r][v]);
        }
        for_each_four<kFours>([&]<int kFour>() __attribute__((always_inline)) {
          constexpr int kPlace = kChunk * kFours + kFour;
          typename IntProduct::Weights<kBits> weights[kVectors];
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) {
            const int64_t at = panel_of(v) * tile.panel_bytes + lane_of(v) * 4;
            if (kIsStreaming && lane_of(v) % kLineLanes == 0) {
              Codes::template ask<kPlace>(low + at + lead, high + at + lead);
            }
            weights[v] =
                IntProduct::split<kBits>(Codes::template read<kPlace>(low + at, high + at));
          }
#pragma GCC unroll 6
          for (int r = 0; r < kRows; ++r) {
            const auto x = IntProduct::input(inputs + r * stride + kFour * IntProduct::kInputBytes);
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) {
              parts[r][v] = IntProduct::add<kBits>(parts[r][v], weights[v], x);
            }
          }
        });
        inputs += kFours * IntProduct::kInputBytes;
#pragma GCC unroll 6
        for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) {
            acc[r][v] = IntProduct::end<kBits>(parts[r][v], acc[r][v]);
          }
        }
      };
      add_chunk.template operator()<0>();
      if constexpr (Codes::kElements > kChunkElements) add_chunk.template operator()<1>();
      low += Codes::kLowBytes;
      high += Codes::kHighBytes;
    }
    if constexpr (!kIsStreaming) {
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) __builtin_prefetch(inputs + (kRows + r) * stride);
      const char* const end = ahead + min_of(tile.ahead_step, tile.ahead_end - ahead);
      for (; ahead < end; ahead += kLineBytes) __builtin_prefetch(ahead, 0, kSecondLevel);
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const int64_t panel = panel_of(v) * tile.panel_bytes, lane = tile.first_lane + lane_of(v);
      const char* const record_scales = place.scales + panel;
      const char* const multiples = place.multiples + panel;
      const Vec scale = load_scales(layout, record_scales, multiples, lane);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const Vec factor = scale * splat(load_one<float>(scales + r * stride));
        sums[r][v] = fma(__builtin_convertvector(acc[r][v], Vec), factor, sums[r][v]);
      }
      if (!layout.has_offsets) continue;
      const Vec offset = load_scales<true>(layout, record_scales, multiples, lane);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const Vec input = splat(load_one<float>(scales + r * stride + tile.sums));
        sums[r][v] = fma(offset, input, sums[r][v]);
      }
    }
    scales += sizeof(float);
    place.advance(layout);
  }
  store_group_tile<kRows, kVectors>(tile, sums);
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
