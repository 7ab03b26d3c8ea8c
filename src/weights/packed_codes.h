// Codes of a few bits each in 32-bit words, as MLX packs them.
#pragma once

#include <cstdint>
#include <span>

namespace paceline {

// A row is one stream of bits: element i takes the bits [i * bits, (i + 1) * bits), counted from
// the lowest bit of the first word. Where `bits` doesn't divide 32 (3, 5 and 6), elements cross
// words. That is the output of mlx.core.quantize 0.32.4 on the CPU, checked bit by bit.
//
// `bits` is 2, 3, 4, 5, 6 or 8; `words` has exactly codes.size() * bits / 32 words.
void unpack_codes(std::span<const uint32_t> words, int bits, std::span<uint8_t> codes);

// Every code is below 2^bits.
void pack_codes(std::span<const uint8_t> codes, int bits, std::span<uint32_t> words);

}  // namespace paceline
