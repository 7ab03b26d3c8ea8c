#include "weights/packed_codes.h"

#include "base/error.h"

namespace paceline {
namespace {

constexpr int kWordBits = 32;

template <int kBits>
void unpack(std::span<const uint32_t> words, std::span<uint8_t> codes) {
  constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  uint64_t held = 0;  // bits read but not yet used
  int num_held = 0;
  size_t next = 0;
  for (uint8_t& code : codes) {
    if (num_held < kBits) {
      held |= uint64_t{words[next++]} << num_held;
      num_held += kWordBits;
    }
    code = static_cast<uint8_t>(held & kMask);
    held >>= kBits;
    num_held -= kBits;
  }
}

void check_sizes(size_t num_words, int bits, size_t num_codes) {
  PL_CHECK(num_words * kWordBits == num_codes * static_cast<size_t>(bits),
           "as many words as the codes fill");
}

}  // namespace

void unpack_codes(std::span<const uint32_t> words, int bits, std::span<uint8_t> codes) {
  check_sizes(words.size(), bits, codes.size());
  switch (bits) {
    case 2:
      return unpack<2>(words, codes);
    case 3:
      return unpack<3>(words, codes);
    case 4:
      return unpack<4>(words, codes);
    case 5:
      return unpack<5>(words, codes);
    case 6:
      return unpack<6>(words, codes);
    case 8:
      return unpack<8>(words, codes);
    default:
      PL_CHECK(false, "2, 3, 4, 5, 6 or 8 bits");
  }
}

void pack_codes(std::span<const uint8_t> codes, int bits, std::span<uint32_t> words) {
  check_sizes(words.size(), bits, codes.size());
  uint64_t held = 0;
  int num_held = 0;
  size_t next = 0;
  for (const uint8_t code : codes) {
    held |= uint64_t{code} << num_held;
    num_held += bits;
    if (num_held < kWordBits) continue;
    words[next++] = static_cast<uint32_t>(held);
    held >>= kWordBits;
    num_held -= kWordBits;
  }
}

}  // namespace paceline
