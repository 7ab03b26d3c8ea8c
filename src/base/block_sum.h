// A checksum that is computed at memory bandwidth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

// Bytes are summed in lines of kLineBytes; the last line is padded with zeros.
constexpr size_t kSumLineBytes = 64;

// Eight lanes, one for each word of 64 bits of a line. A lane's step is that of FNV-1a (Fowler,
// Noll, Vo; RFC 9923) on whole words, hash = (hash ^ word) * prime, and a rotation that brings the
// high bits, which a product only moves up, down again; lanes are joined with the finaliser of
// SplitMix64 (Steele, Lea, Flood, 2014). Each step is a bijection of the hash and of the word, so a
// change of one word is always detected, any other with probability 1 - 2^-64. It detects damage,
// not forgery. `seed` gives equal blocks different sums.
uint64_t block_sum(std::span<const std::byte> bytes, uint64_t seed);

}  // namespace paceline
