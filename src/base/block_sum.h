// A checksum of a block of bytes that is computed as fast as memory delivers them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

// Bytes are summed in lines of so many; a last line that isn't full counts as filled up with zeros.
constexpr size_t kSumLineBytes = 64;

// Eight lanes, one for each word of 64 bits of a line. A lane's step is that of FNV-1a (Fowler,
// Noll, Vo; RFC 9923) on whole words, hash = (hash ^ word) * prime, and a rotation that brings the
// high bits, which a product only moves up, down again; lanes are joined with the finaliser of
// SplitMix64 (Steele, Lea, Flood, 2014). Each step is a bijection of the hash and of the word, so a
// change of any one word is found for certain, and others but with a chance of about 2^-64. It is
// against damage: who wants two blocks with one sum finds them. `seed` tells equal blocks apart.
uint64_t block_sum(std::span<const std::byte> bytes, uint64_t seed);

}  // namespace paceline
