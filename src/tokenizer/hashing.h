// Keyed hashes of short strings and pairs for the tables of a tokenizer: a file can't choose
// collisions.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace paceline {

// A key that differs from run to run; it affects positions in a table, never a result.
inline uint64_t random_hash_key() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Both halves of a 64 x 64 bit product folded together: the mixing step of wyhash (Wang Yi).
inline uint64_t hash_mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The multipliers are constant: some random ones would be bad and make tables slow.
inline uint64_t hash_integer(uint64_t value, uint64_t key) {
  return hash_mix(hash_mix(value ^ key, 0x9E3779B97F4A7C15u) ^ key, 0xD6E8FEB86659FD93u);
}

// Eight bytes as a number.
inline uint64_t load_word(const char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

// One to seven bytes as a number, padded with zeros as on a little-endian machine. Avoids a copy of
// variable size, which would cost more than the rest of a hash.
inline uint64_t load_short_word(std::string_view bytes) {
  const char* data = bytes.data();
  const size_t size = bytes.size();
  if (size >= 4) {
    uint32_t first = 0;
    uint32_t last = 0;
    std::memcpy(&first, data, sizeof(first));
    std::memcpy(&last, data + size - 4, sizeof(last));
    return first | (uint64_t{last} << (8 * (size - 4)));
  }
  const auto byte = [&](size_t i) { return uint64_t{static_cast<uint8_t>(data[i])} << (8 * i); };
  return byte(0) | byte(size / 2) | byte(size - 1);
}

inline uint64_t hash_bytes(std::string_view bytes, uint64_t key) {
  uint64_t state = key ^ (bytes.size() * 0x9E3779B97F4A7C15u);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    state = hash_mix(state ^ load_word(bytes.data()), 0xD6E8FEB86659FD93u);
  }
  const uint64_t word = bytes.empty() ? 0 : load_short_word(bytes);
  state = hash_mix(state ^ word, 0xA0761D6478BD642Fu);
  return hash_mix(state ^ key, 0xE7037ED1A0B428DBu);
}

}  // namespace paceline
