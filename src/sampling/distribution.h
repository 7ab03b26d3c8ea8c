// Distribution is what a token is drawn from: candidates and their integer weights.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline {

// After penalties, bias, mask, temperature and truncation. Ids ascend, weights are positive (a
// token of probability zero is left out).
struct Distribution {
  std::vector<int32_t> ids;
  std::vector<uint64_t> weights;
  uint64_t total = 0;  // of the weights

  bool empty() const { return ids.empty(); }
};

}  // namespace paceline
