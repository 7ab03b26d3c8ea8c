// Reads the codes of a panel from the planes of packed_groups.h, a vector of columns at a time.
#pragma once

#include "kernels/cpu/vec.h"
#include "kernels/packed_groups.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// A word of 4 bytes per column: the codes of four elements, or of several fours in narrower fields.
constexpr int64_t kStepBytes = kPanelWidth * 4;

template <int kBits>
struct PanelCodes {
  static constexpr CodePlanes kPlanes = code_planes(kBits);
  // The fewest elements that fill whole words of both planes.
  static constexpr int kElements = kPlanes.high == 1 ? 32 : 16;
  static constexpr int64_t kLowBytes = kElements * kPlanes.low / 32 * kStepBytes;
  static constexpr int64_t kHighBytes = kElements * kPlanes.high / 32 * kStepBytes;

  // Elements 4 * kFour to 4 * kFour + 3 of kElements, one to a byte. `low` and `high` are where
  // those elements' words begin, at the vector's first column.
  template <int kFour>
  PL_INLINE Uints read(const char* low, const char* high) {
    const Uints codes = bits_of<kPlanes.low, kFour>(low);
    if constexpr (kPlanes.high == 0) {
      return codes;
    } else {
      return codes | bits_of<kPlanes.high, kFour>(high) << kPlanes.low;
    }
  }
  // Prefetches the lines that read<kFour>() reads and no earlier read does.
  template <int kFour>
  PL_INLINE void prefetch(const char* low, const char* high) {
    prefetch_plane<kPlanes.low, kFour>(low);
    if constexpr (kPlanes.high > 0) prefetch_plane<kPlanes.high, kFour>(high);
  }

 private:
  template <int kWidth, int kFour>
  PL_INLINE void prefetch_plane(const char* plane) {
    constexpr int kInByte = 8 / kWidth;
    if constexpr (kFour % kInByte == 0) __builtin_prefetch(plane + kFour / kInByte * kStepBytes);
  }

  template <int kWidth, int kFour>
  PL_INLINE Uints bits_of(const char* plane) {
    constexpr int kInByte = 8 / kWidth;
    const Uints word = load_bits(plane + kFour / kInByte * kStepBytes);
    if constexpr (kWidth == 8) {
      return word;
    } else {
      return (word >> (kWidth * (kFour % kInByte))) & (((1u << kWidth) - 1) * 0x01010101u);
    }
  }
};

// Calls use.operator()<kFour>() for 0 to kCount - 1, unrolled.
template <int kCount, int kFour = 0, class Use>
PL_INLINE void for_each_four(const Use& use) {
  if constexpr (kFour < kCount) {
    use.template operator()<kFour>();
    for_each_four<kCount, kFour + 1>(use);
  }
}

// Calls use(k, codes) for each four elements k to k + 3 of a group, one to a byte. `group` is where
// the codes of the wanted columns begin.
template <int kBits, class Use>
PL_INLINE void for_each_codes(const char* group, int64_t group_size, const Use& use) {
  using Codes = PanelCodes<kBits>;
  const char* low = group;
  const char* high = group + group_size * kPanelWidth * Codes::kPlanes.low / 8;
  for (int64_t k = 0; k < group_size; k += Codes::kElements) {
    for_each_four<Codes::kElements / 4>([&]<int kFour>() __attribute__((always_inline)) {
      use(k + 4 * kFour, Codes::template read<kFour>(low, high));
    });
    low += Codes::kLowBytes;
    high += Codes::kHighBytes;
  }
}

// Calls use.operator()<bits>().
template <class Use>
PL_INLINE void with_code_bits(int bits, const Use& use) {
  switch (bits) {
    case 2:
      return use.template operator()<2>();
    case 3:
      return use.template operator()<3>();
    case 4:
      return use.template operator()<4>();
    case 5:
      return use.template operator()<5>();
    case 6:
      return use.template operator()<6>();
    default:
      return use.template operator()<8>();
  }
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
