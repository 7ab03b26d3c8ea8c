// Whether all elements of a row are finite.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace paceline {

// The largest exponent is that of NaN and infinity.
inline bool is_finite(std::span<const float> row) {
  constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  uint32_t largest = 0;
  for (const float value : row) {
    largest = std::max(largest, std::bit_cast<uint32_t>(value) & kMagnitude);
  }
  return largest < kInfinity;
}

}  // namespace paceline
