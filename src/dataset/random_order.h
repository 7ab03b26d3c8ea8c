// Random orders that are a function of their seed and stream alone.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline {

// The numbers from 0 to count - 1, shuffled (Fisher and Yates, drawn by Philox without bias).
std::vector<int64_t> random_order(int64_t count, uint64_t seed, uint64_t stream);

}  // namespace paceline
