// Half a panel of quantised weights whose groups share factors, in the layout of tile registers: 16
// columns of one segment. Codes minus their zero point are multiplied by their group's multiple,
// which gives integers of at most 16 bits. One plane holds their low bytes (from -128 to 127),
// another their high bytes. Tiles thus sum several groups in one integer.
#pragma once

#include "kernels/cpu/group_layout.h"
#include "kernels/cpu/half_panel.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int64_t kPlaneTileBytes = kTileRows * kRowBytes;

struct PlanePanel {
  char* codes = nullptr;             // [length / 64][2][16][16][4], the low plane first
  float* factors = nullptr;          // [16]
  float* scales = nullptr;           // [totals][16], the factors of the groups' multiples
  float* offsets = nullptr;          // [totals][16], where groups have their own
  uint32_t* offset_pairs = nullptr;  // [groups / 2][16] pairs of multiples
};

constexpr int64_t kPlanePanelBytes = kSegmentLength * kTileColumns * 2 + kRowBytes +
                                     kSegmentLength / kMostSharedInputs * kRowBytes * 2 +
                                     kSegmentLength / 16 / 2 * kRowBytes;

// `from` has kPlanePanelBytes.
PL_INLINE PlanePanel plane_panel_at(char* from, int64_t num_totals) {
  char* const factors = from + num_totals * kMostSharedInputs * kTileColumns * 2;
  char* const scales = factors + kRowBytes;
  char* const offsets = scales + num_totals * kRowBytes;
  return {.codes = from,
          .factors = reinterpret_cast<float*>(factors),
          .scales = reinterpret_cast<float*>(scales),
          .offsets = reinterpret_cast<float*>(offsets),
          .offset_pairs = reinterpret_cast<uint32_t*>(offsets + num_totals * kRowBytes)};
}

using Words = int16_t __attribute__((vector_size(64)));
using UnsignedWords = uint16_t __attribute__((vector_size(64)));

// Four codes a lane times the lane's multiple (given twice, in 16 bits each), as low and high
// bytes.
PL_INLINE void store_planes(Uints codes, Words zero, Words multiples, char* to) {
  const Words even = (Words)(codes & 0x00FF00FFu) - zero;
  const Words odd = (Words)((UnsignedWords)codes >> 8) - zero;
  const Words first = even * multiples, second = odd * multiples;
  const auto half = (Words)splat_bits(0x00800080u);  // makes the low byte signed
  const Uints low = ((Uints)first & 0x00FF00FFu) | (Uints)(second << 8);
  const Uints high =
      (((Uints)(first + half) >> 8) & 0x00FF00FFu) | ((Uints)(second + half) & 0xFF00FF00u);
  __builtin_memcpy(to, &low, sizeof(low));
  __builtin_memcpy(to + kPlaneTileBytes, &high, sizeof(high));
}

template <int kBits>
void widen_planes(const GroupPanels& weights, const PanelPart& part, const PlanePanel& to) {
  const auto zero_point = static_cast<uint32_t>(weights.has_offsets ? 0 : weights.zero_point);
  const auto zero = (Words)splat_bits(zero_point | (zero_point << 16));
  const RecordLayout layout(weights);
  GroupCursor place(layout, part.record);
  int64_t first = 0, total = 0;
  store(to.factors, load(reinterpret_cast<const float*>(part.panel) + part.lane));
  for (int64_t g = 0; g < part.num_groups; ++g) {
    const Uints multiple = (Uints)load_multiples(place.multiples, part.lane);
    const auto multiples = (Words)((multiple & 0xFFFFu) | (multiple << 16));
    for_each_codes<kBits>(
        place.codes + part.lane * 4, weights.group_size, [&](int64_t k, Uints codes) {
          const int64_t at = first + k, in_tile = at % kRowBytes;
          store_planes(codes, zero, multiples,
                       to.codes + (at - in_tile) * kTileColumns * 2 + in_tile * kTileColumns);
        });
    first += weights.group_size;
    if (weights.has_offsets && g % 2 == 0) {
      const Uints pairs = load_offset_pairs(layout, place.multiples, part.lane);
      __builtin_memcpy(to.offset_pairs + g / 2 * kTileColumns, &pairs, sizeof(pairs));
    }
    if (layout.ends_total(g)) {
      store(to.scales + total * kTileColumns, load_factors(place.scales, part.lane));
      if (weights.has_offsets) {
        store(to.offsets + total * kTileColumns, load_factors<true>(place.scales, part.lane));
      }
      ++total;
    }
    place.advance(layout);
  }
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
