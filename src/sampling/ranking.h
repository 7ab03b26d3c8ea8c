// Ranking orders tokens by (probability down, id up) and cuts by weight, without a full sort.
#pragma once

#include <cstdint>
#include <span>

#include "base/sampling_math.h"

namespace paceline {

struct RankedWeight {
  uint64_t key = 0;
  uint64_t weight = 0;
};

// The key of the last entry of the smallest prefix, by key downwards, whose weights sum to at least
// `target` > 0; the lowest key when all of them fall short. Keys are distinct and there is at least
// one; the entries are left in any order.
uint64_t last_key_of_prefix(std::span<RankedWeight> entries, uint64_t target);

}  // namespace paceline
