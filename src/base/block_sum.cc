#include "base/block_sum.h"

#include <array>
#include <bit>
#include <cstring>

namespace paceline {
namespace {

constexpr uint64_t kPrime = 0x9E3779B185EBCA87;  // odd, its bits well mixed
constexpr int kRotation = 29;
constexpr size_t kNumLanes = kSumLineBytes / sizeof(uint64_t);
using Lanes = std::array<uint64_t, kNumLanes>;

// The finaliser of SplitMix64.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

uint64_t step(uint64_t hash, uint64_t word) { return std::rotl((hash ^ word) * kPrime, kRotation); }

uint64_t word_at(const std::byte* line, size_t index) {
  uint64_t word;
  std::memcpy(&word, line + index * sizeof(word), sizeof(word));
  return word;
}

// Written out, so that the lanes stay in registers.
void add_lines(Lanes& lanes, const std::byte* first, const std::byte* end) {
  auto [a, b, c, d, e, f, g, h] = lanes;
  for (const std::byte* line = first; line < end; line += kSumLineBytes) {
    a = step(a, word_at(line, 0));
    b = step(b, word_at(line, 1));
    c = step(c, word_at(line, 2));
    d = step(d, word_at(line, 3));
    e = step(e, word_at(line, 4));
    f = step(f, word_at(line, 5));
    g = step(g, word_at(line, 6));
    h = step(h, word_at(line, 7));
  }
  lanes = {a, b, c, d, e, f, g, h};
}

}  // namespace

uint64_t block_sum(std::span<const std::byte> bytes, uint64_t seed) {
  Lanes lanes;
  for (size_t i = 0; i < kNumLanes; ++i) lanes[i] = mix(seed * kNumLanes + i + 1);
  const size_t whole = bytes.size() / kSumLineBytes * kSumLineBytes;
  add_lines(lanes, bytes.data(), bytes.data() + whole);
  if (whole < bytes.size()) {
    std::array<std::byte, kSumLineBytes> line{};
    std::memcpy(line.data(), bytes.data() + whole, bytes.size() - whole);
    add_lines(lanes, line.data(), line.data() + line.size());
  }
  uint64_t sum = (bytes.size() + kSumLineBytes - 1) / kSumLineBytes;
  for (const uint64_t lane : lanes) sum = mix(sum ^ lane);
  return sum;
}

}  // namespace paceline
