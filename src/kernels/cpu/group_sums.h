// A tile of sums of a quantised product, some rows times some vectors of columns over one segment,
// and how it accumulates the integer products of groups.
#pragma once

#include "kernels/cpu/group_layout.h"
#include "kernels/cpu/int_products.h"
#include "kernels/packed_layout.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int kPanelVectors = static_cast<int>(kPanelWidth) / kLanes;
// A sum takes two registers, one of integers inside a group and one of floats; the rest hold
// weights, scales and inputs. Where registers are few, tiles of more sums than kRegisterSums keep
// the floats in memory, which they use once a group.
constexpr bool kHasFewRegisters = kAccumulators < 24;
constexpr int kGroupSums = kHasFewRegisters ? 8 : kAccumulators / 2;
constexpr int kRegisterSums = kHasFewRegisters ? 4 : kGroupSums;
constexpr int kMaxGroupVectors = kGroupSums >= 8 ? 8 : 4;
constexpr int kMinGroupVectors = 2;
constexpr int kMaxGroupRows = kGroupSums / kMinGroupVectors;
constexpr int kMaxStreamingRows = 4;
constexpr int64_t kLineLanes = 16;  // of four codes each
// Elements multiplied without a branch, the length of the shortest group. Codes with a plane of
// single bits take two chunks at once.
constexpr int kChunkElements = 16;

struct GroupTile {
  const char* codes = nullptr;    // of the first row's inputs at the segment's start
  const char* scales = nullptr;   // of the first row and the segment's first group
  int64_t starts = 0;             // bytes from a scale to the start of its integer sums
  int64_t sums = 0;               // from the first scale to the first sum of inputs
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
  // The prefetch distance of tiles of few rows. Codes from `skip_from` on prefetch past the end of
  // their panel: they skip the tile's other panels too, to those of the next tile.
  int64_t prefetch_bytes = 0;
  const char* skip_from = nullptr;
  int64_t skip_bytes = 0;
  // The next segment: tiles of many rows prefetch `next_step` bytes of it in each group.
  const char* next = nullptr;
  const char* next_end = nullptr;
  int64_t next_step = 0;
};

// The panel of vector v of the tile's columns, and the vector's first lane in it.
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

// Accumulates one group: sum += scale * float(product); with offsets, sum += offset * sum of
// inputs. `scale` includes the scale of the inputs, except in totals (add_totals).
template <bool kOfTotals, int kRows, int kVectors>
PL_INLINE void add_group(const GroupTile& tile, const GroupCursor& place, const char* scales,
                         const Ints (&products)[kRows][kVectors], Vec (&sums)[kRows][kVectors]) {
  const RecordLayout& layout = tile.layout;
  const int64_t stride = tile.input_stride;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const char* const record_scales = place.scales + panel_of(v) * tile.panel_bytes;
    const int64_t lane = tile.first_lane + lane_of(v);
    const Vec scale = load_factors(record_scales, lane);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      Vec factor = scale;
      if constexpr (!kOfTotals) factor = scale * splat(load_one<float>(scales + r * stride));
      sums[r][v] = fma(__builtin_convertvector(products[r][v], Vec), factor, sums[r][v]);
    }
    if (!layout.has_offsets) continue;
    const Vec offset = load_factors<true>(record_scales, lane);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const Vec input = splat(load_one<float>(scales + r * stride + tile.sums));
      sums[r][v] = fma(offset, input, sums[r][v]);
    }
  }
}

// sums += total * scale of the inputs; totals restart from zero. `scales` is the last group's.
template <int kRows, int kVectors>
PL_INLINE void add_totals(const GroupTile& tile, const char* scales, Vec (&totals)[kRows][kVectors],
                          Vec* sums) {
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    const Vec scale = splat(load_one<float>(scales + r * tile.input_stride));
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Vec& sum = sums[r * kVectors + v];
      sum = fma(totals[r][v], scale, sum);
      totals[r][v] = Vec{};
    }
  }
}

// Where groups share factors: total += product * the group's multiple, in integers, over the groups
// whose inputs share a scale.
template <int kRows, int kVectors>
PL_INLINE void add_multiples(const GroupTile& tile, const GroupCursor& place,
                             const Ints (&products)[kRows][kVectors],
                             Vec (&totals)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const Ints multiples = load_multiples(place.multiples + panel_of(v) * tile.panel_bytes,
                                          tile.first_lane + lane_of(v));
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      totals[r][v] = (Vec)((Ints)totals[r][v] + products[r][v] * multiples);
    }
  }
}

// Accumulates a total at its last group, `group`, where `place` stands. With f the factor of the
// scales, o that of the offsets, and t the integer total of offset multiples times input codes:
// sum += (float(total) * f + float(t) * o) * scale of the inputs.
template <int kRows, int kVectors>
PL_INLINE void add_integer_totals(const GroupTile& tile, const GroupCursor& place, int64_t group,
                                  Vec (&totals)[kRows][kVectors], Vec* sums) {
  const RecordLayout& layout = tile.layout;
  const int64_t stride = tile.input_stride;
  const int64_t first = group + 1 - layout.groups_per_input;
  const char* const scales = tile.scales + group * int64_t{sizeof(float)};
  const char* const input_sums = tile.scales + tile.sums + first * int64_t{sizeof(int16_t)};
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t panel = panel_of(v) * tile.panel_bytes, lane = tile.first_lane + lane_of(v);
    const char* const record_scales = place.scales + panel;
    const Vec factor = load_factors(record_scales, lane);
    Vec values[kRows];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      values[r] = __builtin_convertvector((Ints)totals[r][v], Vec) * factor;
      totals[r][v] = Vec{};
    }
    if (layout.has_offsets) {
      const char* const multiples =
          place.multiples + panel - (layout.groups_per_input - 1) * layout.multiple_bytes;
      Ints offsets[kRows] = {};
      for (int64_t g = 0; g < layout.groups_per_input; g += 2) {
        const Uints pairs = load_offset_pairs(layout, multiples + g * layout.multiple_bytes, lane);
#pragma GCC unroll 6
        for (int r = 0; r < kRows; ++r) {
          const char* const from = input_sums + r * stride + g * int64_t{sizeof(int16_t)};
          const Uints inputs = splat_bits(load_one<uint32_t>(from));
          offsets[r] = offsets[r] + multiply_add_pairs(pairs, inputs);
        }
      }
      const Vec offset_factor = load_factors<true>(record_scales, lane);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        values[r] = fma(__builtin_convertvector(offsets[r], Vec), offset_factor, values[r]);
      }
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const Vec input_scale = splat(load_one<float>(scales + r * stride));
      sums[r * kVectors + v] = fma(values[r], input_scale, sums[r * kVectors + v]);
    }
  }
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
