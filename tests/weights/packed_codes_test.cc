#include "weights/packed_codes.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace paceline {
namespace {

TEST(PackedCodes, AreAStreamOfBitsFromTheLowestUp) {
  std::array<uint8_t, 32> codes{};
  codes[0] = 5;
  codes[10] = 7;  // bits 30, 31 and 32: in two words
  codes[31] = 1;
  std::array<uint32_t, 3> words{};
  pack_codes(codes, 3, words);
  EXPECT_EQ(words, (std::array<uint32_t, 3>{0xC0000005, 1, uint32_t{1} << 29}));
}

TEST(PackedCodes, UnpackToWhatWasPacked) {
  uint32_t state = 1;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    SCOPED_TRACE(bits);
    std::vector<uint8_t> codes(96);
    for (uint8_t& code : codes) {
      state = state * 1664525 + 1013904223;
      code = static_cast<uint8_t>((state >> 24) & ((1u << bits) - 1));
    }
    std::vector<uint32_t> words(codes.size() * static_cast<size_t>(bits) / 32);
    pack_codes(codes, bits, words);
    std::vector<uint8_t> unpacked(codes.size());
    unpack_codes(words, bits, unpacked);
    EXPECT_EQ(unpacked, codes);
  }
}

}  // namespace
}  // namespace paceline
