#include "base/siphash.h"

#include <bit>
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
};

}  // namespace

SipKey random_sip_key() {
  std::random_device device;
  const auto word = [&device] { return (uint64_t{device()} << 32) | device(); };
  return {.low = word(), .high = word()};
}

Hash128 siphash128(const SipKey& key, std::span<const uint64_t> words) {
  // The constants are the ASCII of "somepseudorandomlygeneratedbytes".
  SipState state{key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d ^ 0xee,
                 key.low ^ 0x6c7967656e657261, key.high ^ 0x7465646279746573};
  for (const uint64_t word : words) state.absorb(word);
  // No bytes are left over; the last word carries the length modulo 256 in its top byte.
  state.absorb(static_cast<uint64_t>(words.size() * sizeof(uint64_t)) << 56);
  state.v2 ^= 0xee;
  state.rounds(4);
  Hash128 hash;
  hash.low = state.folded();
  state.v1 ^= 0xdd;
  state.rounds(4);
  hash.high = state.folded();
  return hash;
}

}  // namespace paceline
