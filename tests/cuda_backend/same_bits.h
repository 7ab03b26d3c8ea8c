// Whether values have the same bits, NaN and signs of zero included.
#pragma once

#include <cstring>
#include <vector>

namespace paceline::testing {

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace paceline::testing
