// The outputs that each segment of a product with adapters changes, computed alone.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace paceline {

// `without` [rows, width] are the outputs without segments; add(segments) returns those with some.
// A segment may change its own rows and columns alone, which a failed expectation says.
inline std::vector<float> added_one_by_one(
    std::span<const LoraSegment> segments, const std::vector<float>& without, int64_t width,
    const std::function<std::vector<float>(std::span<const LoraSegment>)>& add) {
  std::vector<float> all = without;
  for (const LoraSegment& segment : segments) {
    const std::vector<float> alone = add(std::span(&segment, 1));
    int64_t num_others = 0;
    for (size_t i = 0; i < alone.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / width - segment.first_row;
      const int64_t column = static_cast<int64_t>(i) % width - segment.first_column;
      if (row >= 0 && row < segment.num_rows && column >= 0 && column < segment.b->n) {
        all[i] = alone[i];
      } else if (alone[i] != without[i]) {
        ++num_others;
      }
    }
    EXPECT_EQ(num_others, 0) << "outputs of other rows or columns";
  }
  return all;
}

}  // namespace paceline
