#include "base/siphash.h"

#include <bit>
#include <cstring>
#include <random>

namespace paceline {
namespace {

struct SipState {
  uint64_t v0, v1, v2, v3;

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  }

  void absorb(uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }

  uint64_t folded() const { return v0 ^ v1 ^ v2 ^ v3; }

  // The constants are the ASCII of "somepseudorandomlygeneratedbytes".
  explicit SipState(const SipKey& key)
      : v0(key.low ^ 0x736f6d6570736575),
        v1(key.high ^ 0x646f72616e646f6d ^ 0xee),
        v2(key.low ^ 0x6c7967656e657261),
        v3(key.high ^ 0x7465646279746573) {}

  // The last word has the bytes that are left over and, on top, the length modulo 256.
  Hash128 finish(uint64_t left_over, size_t num_bytes) {
    absorb(left_over | static_cast<uint64_t>(num_bytes) << 56);
    v2 ^= 0xee;
    rounds(4);
    Hash128 hash;
    hash.low = folded();
    v1 ^= 0xdd;
    rounds(4);
    hash.high = folded();
    return hash;
  }
};

}  // namespace

SipKey random_sip_key() {
  std::random_device device;
  const auto word = [&device] { return (uint64_t{device()} << 32) | device(); };
  return {.low = word(), .high = word()};
}

Hash128 siphash128(const SipKey& key, std::span<const uint64_t> words) {
  SipState state(key);
  for (const uint64_t word : words) state.absorb(word);
  return state.finish(0, words.size() * sizeof(uint64_t));
}

Hash128 siphash128_bytes(const SipKey& key, std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little);
  SipState state(key);
  size_t at = 0;
  uint64_t word = 0;
  for (; at + sizeof(word) <= bytes.size(); at += sizeof(word)) {
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    state.absorb(word);
  }
  word = 0;
  if (at < bytes.size()) std::memcpy(&word, bytes.data() + at, bytes.size() - at);
  return state.finish(word, bytes.size());
}

}  // namespace paceline
