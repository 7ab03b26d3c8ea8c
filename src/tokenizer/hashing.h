// Keyed hashes of short strings and pairs for the tables of a tokenizer: a file can't choose
// collisions.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace paceline {

// A key that differs from run to run; it decides places in a table, never a result.
inline uint64_t random_hash_key() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Both halves of a 64 x 64 bit product folded together: the mixing step of wyhash (Wang Yi).
inline uint64_t hash_mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_integer(uint64_t value, uint64_t key) {
  return hash_mix(value ^ key, key | 0x9E3779B97F4A7C15u);
}

inline uint64_t hash_bytes(std::string_view bytes, uint64_t key) {
  uint64_t state = key ^ (bytes.size() * 0x9E3779B97F4A7C15u);
  const char* data = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; data += 8, left -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, data, 8);
    state = hash_mix(state ^ word, key | 0xD6E8FEB86659FD93u);
  }
  uint64_t word = 0;
  if (left > 0) std::memcpy(&word, data, left);
  state = hash_mix(state ^ word, key | 0xA0761D6478BD642Fu);
  return hash_mix(state, 0xE7037ED1A0B428DBu);
}

}  // namespace paceline
