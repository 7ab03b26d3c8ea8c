// The product of a tile: codes of weights times codes of inputs, in integers.
#pragma once

#include "kernels/cpu/group_sums.h"
#include "kernels/cpu/panel_codes.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// Keeps rarely used numbers out of registers.
template <class Numbers>
PL_INLINE Numbers* keep_in_memory(Numbers* numbers) {
  __asm__("" : "+r"(numbers) : : "memory");
  return numbers;
}
template <bool kInMemory, class Numbers>
PL_INLINE Numbers& keep_in_memory_if(Numbers& numbers) {
  return kInMemory ? *keep_in_memory(&numbers) : numbers;
}

// Prefetches the heads of the records that are `distance` bytes ahead.
template <int kVectors>
PL_INLINE void prefetch_heads(const GroupTile& tile, const RecordLayout& layout,
                              const GroupCursor& place, int64_t distance) {
  const int64_t bytes = layout.head_bytes();
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; v += kPanelVectors) {
    const char* const head = place.scales + panel_of(v) * tile.panel_bytes + distance;
    for (int64_t line = 0; line < bytes; line += kLineBytes) __builtin_prefetch(head + line);
  }
}

// Accumulates group after group, or total after total. The form of the scales is a run-time branch:
// a kernel for each form took twice as long to compile and was no faster.
template <int kBits, int kRows, int kVectors>
void multiply_group_tile(const GroupTile& tile) {
  using Codes = PanelCodes<kBits>;
  using Product = IntProduct<kBits>;
  constexpr bool kHasWords = Product::kWordElements > 0;
  constexpr int kFours = kChunkElements / 4;
  // Few rows stream their weights from memory. Many rows find them in the cache, and prefetch the
  // next rows' inputs.
  constexpr bool kIsStreaming = kRows <= kMaxStreamingRows;
  const char* inputs = tile.codes;
  const char* scales = tile.scales;
  const RecordLayout layout = tile.layout;
  GroupCursor place(layout, tile.records);
  const char* next = tile.next;
  const int64_t stride = tile.input_stride;
  const int64_t low_bytes = tile.group_size * kPanelWidth * Codes::kPlanes.low / 8;
  constexpr bool kIsLarge = kRows * kVectors > kRegisterSums;
  constexpr bool kHasLargeWords = kIsLarge && kHasWords;
  Vec own_sums[kRows][kVectors] = {};  // or totals, as integers where groups have multiples
  auto& sums = keep_in_memory_if<kIsLarge>(own_sums);
  Vec sums_of_totals[kRows * kVectors];
  Vec* const kept_sums = keep_in_memory(sums_of_totals);
  if (layout.has_totals()) {
    for (int i = 0; i < kRows * kVectors; ++i) kept_sums[i] = Vec{};
  }
  for (int64_t g = 0; g < tile.num_groups; ++g) {
    Ints own_acc[kRows][kVectors];
    auto& acc = keep_in_memory_if<kHasLargeWords>(own_acc);
    Ints words[kRows][kVectors] = {};
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const Ints start = (Ints)splat_bits(load_one<uint32_t>(scales + r * stride + tile.starts));
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[r][v] = start;
    }
    const char* low = place.codes + tile.first_lane * 4;
    const char* high = low + low_bytes;
    const int64_t distance =
        tile.prefetch_bytes + (place.codes >= tile.skip_from ? tile.skip_bytes : 0);
    if (kIsStreaming && place.left == layout.groups_per_factor) {
      prefetch_heads<kVectors>(tile, layout, place, distance);
    }
    for (int64_t first = 0; first < tile.group_size; first += Codes::kElements) {
      const auto add_chunk = [&]<int kChunk>() __attribute__((always_inline)) {
        for_each_four<kFours>([&]<int kFour>() __attribute__((always_inline)) {
          constexpr int kPlace = kChunk * kFours + kFour;
          typename Product::Weights weights[kVectors];
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) {
            const int64_t at = panel_of(v) * tile.panel_bytes + lane_of(v) * 4;
            if (kIsStreaming && lane_of(v) % kLineLanes == 0) {
              Codes::template prefetch<kPlace>(low + at + distance, high + at + distance);
            }
            weights[v] = Product::split(Codes::template read<kPlace>(low + at, high + at));
          }
#pragma GCC unroll 6
          for (int r = 0; r < kRows; ++r) {
            const auto x = Product::input(inputs + r * stride + kFour * Product::kInputBytes);
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) {
              Ints& sum = kHasWords ? words[r][v] : acc[r][v];
              sum = Product::add(sum, weights[v], x);
            }
          }
        });
        inputs += kFours * Product::kInputBytes;
      };
      add_chunk.template operator()<0>();
      if constexpr (Codes::kElements > kChunkElements) add_chunk.template operator()<1>();
      low += Codes::kLowBytes;
      high += Codes::kHighBytes;
      if constexpr (kHasWords) {
        const int64_t end = first + Codes::kElements;
        if (end % Product::kWordElements != 0 && end < tile.group_size) continue;
#pragma GCC unroll 6
        for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) {
            acc[r][v] = Product::end(words[r][v], acc[r][v]);
            words[r][v] = Ints{};
          }
        }
      }
    }
    if constexpr (!kIsStreaming) {
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) __builtin_prefetch(inputs + (kRows + r) * stride);
      const char* const end = next + min_of(tile.next_step, tile.next_end - next);
      for (; next < end; next += kLineBytes) __builtin_prefetch(next, 0, kSecondLevel);
    }
    if (layout.has_multiples()) {
      add_multiples(tile, place, acc, sums);
      if (layout.ends_total(g)) add_integer_totals(tile, place, g, sums, kept_sums);
    } else if (layout.has_totals()) {
      add_group<true>(tile, place, scales, acc, sums);
      if (layout.ends_total(g)) add_totals(tile, scales, sums, kept_sums);
    } else {
      add_group<false>(tile, place, scales, acc, sums);
    }
    scales += sizeof(float);
    place.advance(layout);
  }
  if (layout.has_totals()) {
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = kept_sums[r * kVectors + v];
    }
  }
  store_group_tile<kRows, kVectors>(tile, sums);
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
