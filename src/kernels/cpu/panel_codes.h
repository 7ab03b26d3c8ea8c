// Codes of a panel as the planes of packed_groups.h hold them, read a vector of columns at a time.
#pragma once

#include "kernels/cpu/vec.h"
#include "kernels/packed_groups.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

// Of the codes of four elements (or of several fours, one above the other) in one panel.
constexpr int64_t kStepBytes = kPanelWidth * 4;
constexpr int kSecondLevel = 2;  // the cache that __builtin_prefetch() is to bring a line to

template <int kBits>
struct PanelCodes {
  static constexpr CodePlanes kPlanes = code_planes(kBits);
  // So many elements use up whole words of both planes.
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
  // Asks for the lines of which read<kFour>() is the first to read.
  template <int kFour>
  PL_INLINE void ask(const char* low, const char* high) {
    ask_for<kPlanes.low, kFour>(low);
    if constexpr (kPlanes.high > 0) ask_for<kPlanes.high, kFour>(high);
  }

 private:
  template <int kWidth, int kFour>
  PL_INLINE void ask_for(const char* plane) {
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

// use.operator()<kFour>() for 0 to kCount - 1, unrolled.
template <int kCount, int kFour = 0, class Use>
PL_INLINE void for_each_four(const Use& use) {
  if constexpr (kFour < kCount) {
    use.template operator()<kFour>();
    for_each_four<kCount, kFour + 1>(use);
  }
}

// use(k, codes) for elements k to k + 3 of a group, one to a byte, of the columns where its codes
// begin at `group`; for all fours of its elements.
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

// use.operator()<kBits>() for the width of codes that panels have.
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
