// SipHash-2-4 with a 128-bit result: a keyed hash, whose collisions can't be found without the key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
};

struct SipKey {
  uint64_t low = 0;
  uint64_t high = 0;
};

// From the system's source of randomness: differs from process to process.
SipKey random_sip_key();
// For digests that need no secret.
inline constexpr SipKey kPublicSipKey{};

// Hashes the words' bytes, least significant first. Aumasson & Bernstein, "SipHash: a fast
// short-input PRF" (2012); the 128-bit variant is that of the authors' reference (its `outlen` 16).
Hash128 siphash128(const SipKey& key, std::span<const uint64_t> words);
Hash128 siphash128_bytes(const SipKey& key, std::span<const std::byte> bytes);

}  // namespace paceline
