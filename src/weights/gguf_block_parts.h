// What several block formats of GGUF have in common: half floats, nibbles, pairs and single bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"

namespace paceline {

inline float half_at(const uint8_t* at) {
  Float16 half{};
  std::memcpy(&half.bits, at, sizeof(half.bits));
  return to_float(half);
}

// codes[i] = low nibble of bytes[i], codes[count + i] = its high nibble.
template <int count>
void unpack_nibbles(const uint8_t* __restrict bytes, uint8_t* __restrict codes) {
  for (int i = 0; i < count; ++i) {
    codes[i] = bytes[i] & 0x0F;
    codes[count + i] = bytes[i] >> 4;
  }
}

// The K formats' two bits per element: 128 codes from 32 bytes, the lowest pairs first.
inline void unpack_pairs(const uint8_t* __restrict bytes, uint8_t* __restrict codes) {
  for (int i = 0; i < 32; ++i) {
    codes[i] = bytes[i] & 3;
    codes[32 + i] = (bytes[i] >> 2) & 3;
    codes[64 + i] = (bytes[i] >> 4) & 3;
    codes[96 + i] = bytes[i] >> 6;
  }
}

// Adds 16 to codes[i] where bit i of the 32 is set.
inline void add_fifth_bits(const uint8_t* __restrict bits, uint8_t* __restrict codes) {
  for (int i = 0; i < 4; ++i) {
    // Bit j alone in byte j; then 0x80 wherever that isn't 0, moved to the place of 16.
    const uint64_t spread = (bits[i] * 0x0101010101010101u) & 0x8040201008040201u;
    const uint64_t sixteens = ((spread + 0x7F7F7F7F7F7F7F7Fu) & 0x8080808080808080u) >> 3;
    uint64_t eight_codes = 0;
    std::memcpy(&eight_codes, codes + 8 * i, sizeof(eight_codes));
    eight_codes |= sixteens;
    std::memcpy(codes + 8 * i, &eight_codes, sizeof(eight_codes));
  }
}

// Adds `value` (a power of two above every code) to codes[32 * bit + i] where that bit of bytes[i]
// is set: the K formats' plane of 32 bytes with one bit for each of 256 elements.
template <int value>
void add_bit_plane(const uint8_t* __restrict bytes, uint8_t* __restrict codes) {
  for (int bit = 0; bit < 8; ++bit) {
    for (int i = 0; i < 32; ++i) {
      codes[32 * bit + i] |= static_cast<uint8_t>(((bytes[i] >> bit) & 1) * value);
    }
  }
}

// IQ4's 16 values that a nibble stands for, plus 128 (kvalues_iq4nl of ggml-common.h).
inline constexpr uint8_t kIq4Codes[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                          129, 141, 153, 166, 181, 197, 217, 241};

// As unpack_nibbles, for 16 bytes.
inline void unpack_iq4(const uint8_t* __restrict bytes, uint8_t* __restrict codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = kIq4Codes[bytes[i] & 0x0F];
    codes[16 + i] = kIq4Codes[bytes[i] >> 4];
  }
}

}  // namespace paceline
