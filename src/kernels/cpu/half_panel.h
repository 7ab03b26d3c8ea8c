// Half a panel of quantised weights in the layout of tile registers: 16 columns of one segment,
// codes minus their zero point, scales in float32.
#pragma once

#include "kernels/cpu/group_layout.h"
#include "kernels/cpu/panel_codes.h"
#include "kernels/cpu/tile_registers.h"
#include "kernels/packed_layout.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// Some groups, from a record on, of the 16 columns from `lane` on.
struct PanelPart {
  const char* panel = nullptr;   // its head
  const char* record = nullptr;  // the first one
  int64_t lane = 0;
  int64_t num_groups = 0;
};

// The shortest groups that tiles multiply: shorter ones leave them too empty.
constexpr int64_t kLeastTileGroup = 32;

using Bytes = uint8_t __attribute__((vector_size(64)));

struct HalfPanel {
  char* codes = nullptr;     // [length / 4][16][4]
  float* factors = nullptr;  // [16]
  float* scales = nullptr;   // [groups][16]
  float* offsets = nullptr;  // [groups][16], where groups have their own
};

constexpr int64_t kHalfPanelBytes =
    kSegmentLength * kTileColumns + kRowBytes + kSegmentLength / kLeastTileGroup * kRowBytes * 2;

// `from` has kHalfPanelBytes.
PL_INLINE HalfPanel half_panel_at(char* from, int64_t length, int64_t num_groups) {
  char* const factors = from + length * kTileColumns;
  char* const scales = factors + kRowBytes;
  return {.codes = from,
          .factors = reinterpret_cast<float*>(factors),
          .scales = reinterpret_cast<float*>(scales),
          .offsets = reinterpret_cast<float*>(scales + num_groups * kRowBytes)};
}

template <int kBits>
void widen_half(const GroupPanels& weights, const PanelPart& part, const HalfPanel& to) {
  const Bytes zero = Bytes{} + static_cast<uint8_t>(weights.zero_point);
  const RecordLayout layout(weights);
  GroupCursor place(layout, part.record);
  char* codes_to = to.codes;
  store(to.factors, load(reinterpret_cast<const float*>(part.panel) + part.lane));
  for (int64_t g = 0; g < part.num_groups; ++g) {
    store(to.scales + g * kTileColumns, load_factors(place.scales, part.lane));
    if (weights.has_offsets) {
      store(to.offsets + g * kTileColumns, load_factors<true>(place.scales, part.lane));
    }
    const char* const group = place.codes + part.lane * 4;
    for_each_codes<kBits>(group, weights.group_size, [&](int64_t k, Uints bytes) {
      const Bytes codes = (Bytes)bytes - zero;
      __builtin_memcpy(codes_to + k * kTileColumns, &codes, sizeof(codes));
    });
    codes_to += weights.group_size * kTileColumns;
    place.advance(layout);
  }
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
