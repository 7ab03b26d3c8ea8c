// Compares values bit for bit, NaN and signs of zero included.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace paceline {

// Where the bits first differ; empty when they are equal.
inline std::string first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return "sizes differ";
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i])) continue;
    return "element " + std::to_string(i) + ": " + std::to_string(a[i]) + " and " +
           std::to_string(b[i]);
  }
  return {};
}

#define EXPECT_SAME_BITS(a, b) EXPECT_EQ(first_difference(a, b), "")

}  // namespace paceline
