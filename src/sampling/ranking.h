// Ranking orders tokens by (probability down, id up) and cuts by weight, without a full sort.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace paceline {

// Larger for the token that comes first: by logit, then by lower id. -0 and +0 are the same logit;
// NaN has no rank.
inline uint64_t rank_key(float logit, int32_t id) {
  const auto bits = std::bit_cast<uint32_t>(logit + 0.0f);
  const uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return (uint64_t{ordered} << 32) | ~static_cast<uint32_t>(id);
}

inline int32_t id_of_key(uint64_t key) { return static_cast<int32_t>(~static_cast<uint32_t>(key)); }

struct RankedWeight {
  uint64_t key = 0;
  uint64_t weight = 0;
};

// The key of the last entry of the smallest prefix, by key downwards, whose weights sum to at least
// `target` > 0; the lowest key when all of them fall short. Keys are distinct and there is at least
// one; the entries are left in any order.
uint64_t last_key_of_prefix(std::span<RankedWeight> entries, uint64_t target);

}  // namespace paceline
